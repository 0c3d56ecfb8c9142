"""Process-local data: global tensors from the local tensors of processes or threads, and back.

Two processes own ranks 0, 1 and 2, 3 of a placement. ``to_global(placement, split(0))`` of their local ``(4, 3)``
tensors is an ``(8, 3)`` tensor, of which each process divides its own four rows over its own two ranks. Under
``broadcast`` all local tensors are equal; where they differ, the first rank's owner's is taken with a warning. Under
``partial_sum`` each process's tensor is one summand, on the first of its ranks. `own_part` is the way back. With one
rank per process this is OneFlow's behaviour; with one process the local tensor is the whole tensor.

Gradients follow the values. Under broadcast the gradient of the first rank's owner is the tensor's, that of the others
is zero, since theirs were not read; and where all take their copy by ``to_local``, their gradients add up.
"""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.runtime import collective_trace
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.processes import World, by_value
from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax._core.runtime.user_line import warn
from sbpjax.errors import AgreementError, OpError, OpTypeError, message

from . import algebra, multi_host
from .algebra import B
from .layout import Layout, axes_of_dims, layout_of
from .placement import placement as Placement
from .shape_check import find_shape_mismatch

Index = tuple[int, ...]


def owners(placement: Placement, world: World) -> np.ndarray:
    """Return the rank of the member that owns each device, shaped as the hierarchy."""
    found = [world.owner(d) for d in placement.devices.flat]
    return np.asarray(found).reshape(placement.hierarchy)


def positions_of(member: int, grid: np.ndarray) -> list[Index]:
    """Return the positions of a member's devices in the placement's grid, in row-major order."""
    return [tuple(int(i) for i in index) for index in np.argwhere(grid == member)]


@hide_mesh
def from_local(
    value,
    placement: Placement,
    sbp,
    world: World,
    check: bool = True,
    check_values: bool | None = None,
    layout: Layout | None = None,
) -> tuple[jax.Array, Layout]:
    """Return the global tensor of the members' local tensors; all members call it.

    Args:
        value: this member's local `jax.Array`.
        placement: the tensor's placement; members outside contribute nothing.
        sbp: the tensor's nd-sbp.
        world: the members.
        check: compare shapes and dtypes first; without it all members' are taken to be equal.
        check_values: compare the values of broadcast tensors too, by a digest of each member's: where they differ, True
            raises, and None warns and takes the first member's. False takes the first member's without comparing.
        layout: the result's, where all members know it, as that of a gradient: then they exchange nothing, and members
            outside need not call.

    Raises:
        OpError: the members' shapes do not make one tensor; every member raises it.
        OpTypeError: their dtypes differ.
        AgreementError: the members name other placements or sbps, or have other values under broadcast and
            ``check_values`` is True.
    """
    grid = owners(placement, world)
    members = sorted({int(m) for m in grid.flat})
    operation = f"x.to_global({placement!r}, {sbp!r})"
    if layout is not None:
        known = layout
        return world.share(operation, value, lambda values: _assemble_array(values, known, grid)), layout
    mine = (tuple(value.shape), str(value.dtype))
    if check:
        compared = check_values is not False and collective_trace.mode() != "off"
        alike = _group_replicas(grid, algebra.parse(sbp, placement, value.ndim)) if compared else []
        digest = _digest(value) if any(world.rank in group for group in alike) else 0
        gathered = world.exchange(operation, (*mine, digest))
        facts = {m: gathered[m][:2] for m in members}
    else:
        facts = dict.fromkeys(members, mine)
    layout = _layout(operation, facts, grid, placement, sbp)
    if check:
        for group in alike:
            _compare(operation, {m: gathered[m][2] for m in group}, placement, layout, raises=check_values is True)
    return world.share(operation, value, lambda values: _assemble_array(values, layout, grid)), layout


def _group_replicas(grid: np.ndarray, codes) -> list[list[int]]:
    """Return the groups of members whose local tensors must be equal: copies of each other on the broadcast axes."""
    if B not in codes:  # a batch that is divided over all processes: every step comes here
        return []
    return [group for group in _group_by_part(grid, codes) if len(group) > 1]


def _group_by_part(grid: np.ndarray, codes) -> list[list[int]]:
    """Return the members of the placement, grouped by the part or summand that they give."""
    kept = [a for a, code in enumerate(codes) if code != B]
    groups: dict[tuple, list[int]] = {}
    for member in sorted({int(m) for m in grid.flat}):
        parts = sorted({tuple(p[a] for a in kept) for p in positions_of(member, grid)})
        groups.setdefault(tuple(parts), []).append(member)
    return list(groups.values())


def ranks_of_equal_parts(operation: str, values: list, placement: Placement, sbp, world: World) -> list[int]:
    """Return the ranks whose tensors are equal although the layout joins or adds them up; none if it does not.

    All members call it.

    Args:
        operation: the operation, for errors.
        values: this member's local arrays.
        placement: the placement of the tensors.
        sbp: the nd-sbp of the tensors.
        world: the members.
    """
    grid = owners(placement, world)
    parts = _group_by_part(grid, algebra.parse(sbp, placement))
    if len(parts) < 2:
        return []
    ranks = sorted(rank for group in parts for rank in group)
    gathered = world.exchange(operation, [_digest(v) for v in values] if world.rank in ranks else [])
    return ranks if all(gathered[rank] == gathered[ranks[0]] for rank in ranks) else []


def _digest(value) -> int:
    """Return a 63-bit digest of a value."""
    data = np.ascontiguousarray(np.asarray(value)).reshape(-1).view(np.uint8)
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") >> 1


def _compare(operation: str, digests: dict[int, int], placement: Placement, layout: Layout, raises: bool) -> None:
    groups = by_value(digests)
    if len(groups) == 1:
        return
    shown = "; ".join(
        f"ranks {ranks_text(ranks)}: values with digest {digest:016x}" for digest, ranks in groups.items()
    )
    own = ", ".join(["sbpjax.sbp.split(0)", *["sbpjax.sbp.broadcast"] * (len(layout.codes) - 1)])
    seen = f"local {layout.dtype}{list(layout.shape)} tensors: {shown}"
    fix = (
        f"x.to_global({placement!r}, [{own}]) if each process has its own rows; seed all processes alike "
        "(sbpjax.manual_seed) for equal weights; check_values=False takes the first rank's without comparing"
    )
    if raises:
        raise AgreementError(operation, seen, "under broadcast every process gives the same values", fix)
    rule = "under broadcast a tensor has one value: the first rank's is taken"
    warn(message(operation, seen, rule, fix))


def _layout(operation: str, facts: dict, grid: np.ndarray, placement: Placement, sbp) -> Layout:
    dtypes = {m: dtype for m, (_, dtype) in facts.items()}
    if len(set(dtypes.values())) > 1:
        raise OpTypeError(
            operation, f"dtypes by rank {dtypes}", "all parts of one tensor have one dtype", "x.to(dtype) first"
        )
    shapes = {m: shape for m, (shape, _) in facts.items()}
    if len({len(s) for s in shapes.values()}) > 1:
        rule = "all parts of one tensor have the same number of dims"
        raise OpError(operation, f"shapes by rank {shapes}", rule, "reshape them")
    for m in facts:
        found = positions_of(m, grid)
        sets = [sorted({p[a] for p in found}) for a in range(grid.ndim)]
        if len(found) != int(np.prod([len(s) for s in sets])):
            rule = f"the devices of one process form a block of the placement's grid; process {m} has {found}"
            fix = "order the ranks so that each process owns whole rows or columns"
            raise OpError(operation, repr(placement), rule, fix)
    ndim = len(next(iter(shapes.values())))
    codes = algebra.parse(sbp, placement, ndim)
    layout = layout_of(placement, codes, _logical_shape(shapes, grid, codes, ndim), np.dtype(dtypes[min(dtypes)]))
    expected = {m: tuple(n for n, _ in _local_sizes_and_offsets(layout, positions_of(m, grid))) for m in facts}
    if expected != shapes:
        raise OpError(operation, f"shapes by rank {shapes}", *find_shape_mismatch(shapes, expected, codes))
    return layout


def _logical_shape(shapes: dict, grid: np.ndarray, codes, ndim: int) -> tuple[int, ...]:
    """Return the logical shape: along a split dim the sum over the members that the splitting axes enumerate."""
    shape = []
    for dim, axes in enumerate(axes_of_dims(codes, ndim)):
        line = tuple(slice(None) if a in axes else 0 for a in range(grid.ndim))
        shape.append(sum(shapes[m][dim] for m in sorted({int(m) for m in np.atleast_1d(grid[line]).flat})))
    return tuple(shape)


def _local_sizes_and_offsets(layout: Layout, positions: list[Index]) -> list[tuple[int, dict]]:
    """Return for each dim the length of a member's local tensor, and where in it each of its parts begins."""
    sizes = layout.placement.hierarchy
    parts = layout.parts()
    flat = [parts[int(np.ravel_multi_index(p, sizes))] for p in positions]
    result = []
    for dim in range(len(layout.shape)):
        begin, total = {}, 0
        for part in sorted({p[dim] for p in flat}):
            begin[part] = total
            total += part[1]
        result.append((total, begin))
    return result


def _assemble_array(values: dict[int, Any], layout: Layout, grid: np.ndarray) -> jax.Array:
    """Return the physical array of the local tensors that are here: this process's own, or those of all threads."""
    sizes, parts = layout.placement.hierarchy, layout.parts()
    stacked = (1,) * len(layout.partial_axes)
    blocks = {}
    for member, value in values.items():
        positions = positions_of(member, grid)
        own = _local_sizes_and_offsets(layout, positions)
        first = tuple(min((p[a] for p in positions), default=0) for a in range(grid.ndim))
        for position in positions:
            part = parts[int(np.ravel_multi_index(position, sizes))]
            if any(position[a] != first[a] for a in layout.partial_axes):
                block = np.zeros(layout.local_shape, layout.dtype)
            else:
                where = (slice(begin[p], begin[p] + p[1]) for p, (_, begin) in zip(part, own, strict=True))
                counts = tuple(count for _, count in part)
                block = value if value.shape == counts else value[tuple(where)]
                if counts != layout.local_shape:
                    block = jnp.pad(block, [(0, n - c) for n, c in zip(layout.local_shape, counts, strict=True)])
            blocks[layout.placement.devices[position]] = block.reshape(stacked + layout.local_shape)
    array = multi_host.array_from_blocks(blocks, layout)
    return array if _replicas_share_owner(layout, grid) else multi_host.broadcast_from_first(array, layout)


def _replicas_share_owner(layout: Layout, grid: np.ndarray) -> bool:
    """Return whether along the broadcast axes every rank has the same owner, so that values cannot differ."""
    for axis, code in enumerate(layout.codes):
        if code == B and (grid != np.take(grid, [0], axis)).any():
            return False
    return True


def is_first_replica(placement: Placement, codes, world: World) -> bool:
    """Return whether this member's local tensor goes into a global one: under broadcast only the first rank's does."""
    positions = positions_of(world.rank, owners(placement, world))
    return any(all(p[a] == 0 for a, code in enumerate(codes) if code == B) for p in positions)


@hide_mesh
def own_part(array: jax.Array, layout: Layout, world: World) -> jax.Array:
    """Return this member's local tensor: its parts joined, its value, or the sum of its summands.

    A member that owns no device of the placement gets an array without elements.
    """
    positions = positions_of(world.rank, owners(layout.placement, world))
    if not positions:
        return jnp.zeros((0,) * len(layout.shape), layout.dtype)
    blocks = {s.device: s.data for s in array.addressable_shards}
    devices, sizes, parts = layout.placement.devices, layout.placement.hierarchy, layout.parts()
    first = tuple(min(p[a] for p in positions) for a in range(len(sizes)))
    found: dict = {}
    for position in positions:
        if any(position[a] != first[a] for a, code in enumerate(layout.codes) if code == B):
            continue
        part = parts[int(np.ravel_multi_index(position, sizes))]
        block = blocks[devices[position]]
        counts = tuple(count for _, count in part)
        if block.shape != layout.local_shape:
            block = block.reshape(layout.local_shape)
        if counts != layout.local_shape:
            block = block[tuple(slice(0, n) for n in counts)]
        if len(positions) > 1:
            block = jax.device_put(block, devices[positions[0]])
        found[part] = found[part] + block if part in found else block
    return world.to_local_device(
        next(iter(found.values())) if len(found) == 1 else _join_blocks(found, len(layout.shape))
    )


def _join_blocks(found: dict, ndim: int) -> jax.Array:
    """Return the array whose blocks are ``found``, keyed by ``(offset, count)`` along each dim."""
    for dim in reversed(range(ndim)):
        lines: dict = {}
        for part in sorted(found):
            lines.setdefault(part[:dim], []).append((part[dim:], found[part]))
        found = {}
        for head, line in lines.items():
            pieces = [block for tail, block in sorted(line, key=lambda item: item[0])]
            found[head] = pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces, dim)
    return found[()]
