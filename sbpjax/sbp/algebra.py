"""The sbp algebra: split, broadcast, partial_sum, and tuples of them.

On four ranks an ``(8, 4)`` tensor may be ``split(0)`` (two rows on each rank), ``broadcast`` (all of it on each) or
``partial_sum`` (each rank holds an ``(8, 4)`` summand). A tensor on an N-D placement has one entry per placement
dimension, in their order or by the names of the axes: ``{"data": split(0)}``, or as JAX writes it,
``PartitionSpec("data")``.

Inside this package an entry is an int code: ``S(d)`` is ``d``, ``B`` is -1, ``P`` is -2; codes sort, hash and index
quickly. In a traced program an entry may also be `FREE`: the plan decides it, see `sbpjax.sbp.undecided`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sbpjax._core import naming
from sbpjax.errors import SbpError, SbpTypeError, count_text

B = -1
P = -2
MAX_DIMS = 64
FREE = -3


class sbp:
    """An sbp entry; make it with `split`, `broadcast` or `partial_sum`. Equal entries have equal codes."""

    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        self.code = code

    def __call__(self) -> sbp:
        return self

    def __eq__(self, other) -> bool:
        return isinstance(other, sbp) and self.code == other.code

    def __hash__(self) -> int:
        return hash((sbp, self.code))

    def __repr__(self) -> str:
        if self.code == B:
            return f"{naming.package()}.sbp.broadcast"
        if self.code == P:
            return f"{naming.package()}.sbp.partial_sum"
        if self.code == FREE:
            return "decided by the plan"
        return f"{naming.package()}.sbp.split(dim={self.code})"

    def __reduce__(self):
        return sbp, (self.code,)

    @property
    def is_split(self) -> bool:
        """Whether this is a split."""
        return self.code != B and self.code != P


def split(dim: int) -> sbp:
    """Return the sbp that cuts tensor dim ``dim`` over the ranks.

    Args:
        dim: from 0 to 63: NumPy's arrays, which values are read as, have at most 64 dims. OneFlow's tensors have 6.

    Raises:
        SbpTypeError: ``dim`` is not an int.
        SbpError: it is negative, as in OneFlow, since an sbp knows no tensor; or no tensor has that many dims.
    """
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise SbpTypeError(f"split({dim!r})", f"a {type(dim).__name__}", "dim is an int", "e.g. split(0)")
    dim = dim.__index__()
    if dim < 0:
        rule = f"Split axis must not be negative, but got {dim}!"
        raise SbpError(f"split({dim})", f"dim {dim}", rule, f"of a tensor x: split(x.ndim - {-dim})")
    if dim >= MAX_DIMS:
        rule = f"Expected split axis to be less than the supported maximum axis ({MAX_DIMS}), but got {dim}!"
        raise SbpError(f"split({dim})", f"dim {dim}", rule, "split a dim the tensor has")
    return sbp(dim)


broadcast = sbp(B)
partial_sum = sbp(P)


@functools.cache
def from_code(code: int) -> sbp:
    """Return the sbp of a code."""
    return {B: broadcast, P: partial_sum}.get(code) or sbp(code)


def name(code: int) -> str:
    """Return the short form of a code: ``S0``, ``B``, ``P``."""
    return "B" if code == B else "P" if code == P else f"S{code}"


def nd_name(codes: tuple[int, ...]) -> str:
    """Return the short form of an nd-sbp: ``S0,B``."""
    return ",".join(name(c) for c in codes)


def _parse_entry(entry, value, axes: int) -> int:
    if isinstance(entry, sbp):
        return entry.code
    if isinstance(entry, str):
        text = entry.strip()
        if text in ("B", "P"):
            return B if text == "B" else P
        if text[:1] == "S" and text[1:].lstrip("-").isdigit():
            return split(int(text[1:])).code
    if isinstance(entry, str):
        known = {"split": "S0", "broadcast": "B", "partial": "P", "s": "S0", "b": "B", "p": "P"}
        letters = entry.strip().rstrip("0123456789()_").lower().partition("_")[0].partition("(")[0]
        digits = "".join(c for c in entry if c.isdigit())
        meant = known.get(letters)
        if meant == "S0" and digits:
            meant = f"S{digits}"
        example = ",".join(["S0", *["B"] * (axes - 1)])
        fix = f'write "{meant}" for {entry!r}' if meant else f'for {count_text(axes, "placement dim")}: "{example}"'
        raise SbpError(f"sbp={value!r}", repr(entry), 'string forms are "S<dim>", "B", "P"', fix)
    raise SbpTypeError(
        f"sbp={value!r}",
        f"an entry of type {type(entry).__name__}",
        "an sbp is split(d), broadcast or partial_sum, or a list of them",
        f"sbp={[repr(split(0)), *[repr(broadcast)] * (axes - 1)]}".replace("'", ""),
    )


def parse(
    value, grid: Any, ndim: int | None = None, *, allow_free: bool = False, names: tuple[str, ...] | None = None
) -> tuple[int, ...]:
    """Return the codes of an sbp given in any accepted form.

    Args:
        value: an `sbp`, a list or tuple of them, or a string such as ``"S0,B"``, one entry per dim of the placement; or
            by axis: a dict of axis names to entries, a `PartitionSpec`, a `NamedSharding`, where axes that are left
            out are broadcast.
        grid: the placement; or a hierarchy, whose axes have the names ``a0``, ``a1``, ….
        ndim: the number of dims of the tensor; None if not known yet.
        names: the names of the axes, instead of those of ``grid``.
        allow_free: accept entries that the plan decides, as `FREE`; for pins in a program that is being traced.

    Raises:
        SbpError: wrong number of entries, a split dim outside the tensor, or an entry that a plan decides.
        SbpTypeError: an entry is no sbp.
    """
    hierarchy = grid if grid.__class__ is tuple else grid.hierarchy
    # Every `to_global` parses, so the usual forms come first: a check for an ABC is Python code.
    if isinstance(value, sbp):
        entries = (value,)
    elif isinstance(value, str):
        entries = value.replace("(", "").replace(")", "").split(",")
    elif isinstance(value, _BY_AXIS):
        entries = _entries_by_axis(value, grid, names or axis_names(grid))
    else:
        entries = value if isinstance(value, (tuple, list, Sequence)) else (value,)
    codes = tuple([e.code if e.__class__ is sbp else _parse_entry(e, value, len(hierarchy)) for e in entries])
    if FREE in codes and not allow_free:
        raise SbpError(
            f"sbp={value!r}",
            "the sbp of a value inside a traced program, which the plan of that program decides",
            "it can be handed on inside that program; outside it has no meaning",
            "return the tensor from the program: the sbp of the result is exact",
        )
    if len(codes) != len(hierarchy):
        raise SbpError(
            f"sbp={value!r}",
            f"{count_text(len(codes), 'entry', 'entries')} for a placement of hierarchy {tuple(hierarchy)}",
            f"an nd-sbp has one entry per placement dimension: {len(hierarchy)}",
            f"give {count_text(len(hierarchy), 'entry', 'entries')}: "
            f'"{nd_name((*codes, *[B] * len(hierarchy))[: len(hierarchy)])}"',
        )
    if ndim is None:
        return codes
    for code in codes:
        if code >= ndim:
            raise SbpError(
                f"sbp={value!r}",
                f"split({code}) of a tensor with {count_text(ndim, 'dim')}",
                f"split(d) needs 0 <= d < {ndim}" if ndim else "a 0-d tensor has no dim to split",
                ("split(0)" if ndim == 1 else f"split one of the dims 0 to {ndim - 1}")
                if ndim
                else "use broadcast or partial_sum",
            )
    return codes


_BY_AXIS = (dict, PartitionSpec, NamedSharding)


def in_order(value, grid):
    """Return an sbp by axis names as a tuple of entries, which can be hashed; any other form as it is."""
    return to_sbp(parse(value, grid)) if isinstance(value, _BY_AXIS) else value


def axis_names(grid) -> tuple[str, ...]:
    """Return the axis names of a placement, or ``a0``, ``a1``, … of a hierarchy."""
    return tuple(f"a{i}" for i in range(len(grid))) if grid.__class__ is tuple else grid.axis_names


def _entries_by_axis(value, grid, names: tuple[str, ...]) -> list[sbp]:
    if isinstance(value, dict):
        unknown, found = [n for n in value if n not in names], value
    else:
        if isinstance(value, NamedSharding):
            names = _names_of_mesh(value, grid)
        spec = value.spec if isinstance(value, NamedSharding) else value
        if PartitionSpec.UNCONSTRAINED in spec.partitions:
            rule = "every dim of a spec is split over axes or whole"
            raise SbpError(f"sbp={value!r}", "UNCONSTRAINED", rule, "leave sbp out where the plan may choose it")
        unknown = [n for n in _axes_in(spec) if n not in names]
        codes = () if unknown else codes_from_spec(spec, names, MAX_DIMS)
        if codes is None:
            rule = f"the inner axis cuts the parts of the outer one, and the placement's order is {names}"
            fix = "jax.make_mesh(...) with the axes in that order, or list them in the mesh's"
            raise SbpError(f"sbp={value!r}", f"{spec}", rule, fix)
        found = dict(zip(names, map(from_code, codes)))
    if unknown:
        rule = f"the axes of the placement are {names}"
        fix = "use these names, or name the axes: sbpjax.placement(mesh), placement(type, ranks, axis_names=(...))"
        raise SbpError(f"sbp={value!r}", f"axis {unknown[0]!r}", rule, fix)
    return [found.get(n, broadcast) for n in names]


def _axes_in(spec: PartitionSpec) -> list:
    """Return the axes that a spec names, in its order."""
    dims = [n for e in spec.partitions if e is not None for n in ((e,) if isinstance(e, str) else e)]
    return [*dims, *sorted(spec.unreduced | spec.reduced)]


def _names_of_mesh(sharding: NamedSharding, grid) -> tuple[str, ...]:
    mesh = sharding.mesh
    sizes = grid if grid.__class__ is tuple else grid.hierarchy
    concrete = sizes is not grid and isinstance(mesh, Mesh)
    if mesh.axis_sizes != sizes or (concrete and (mesh.devices != grid.devices).any()):
        rule = f"the mesh of a sharding is the placement's, {grid!r}"
        raise SbpError(f"sbp={sharding!r}", f"{mesh}", rule, "placement=sbpjax.placement(sharding.mesh)")
    return mesh.axis_names


def codes_from_spec(spec: PartitionSpec, names: tuple[str, ...], ndim: int) -> tuple[int, ...] | None:
    """Return the codes of a `PartitionSpec`, or None if an axis of a dim is not in the mesh's order."""
    codes = [P if n in spec.unreduced else B for n in names]
    for dim, entry in enumerate(spec.partitions):
        axes = [names.index(n) for n in (() if entry is None else (entry,) if isinstance(entry, str) else entry)]
        if axes != sorted(axes):
            return None
        for axis in axes:
            codes[axis] = dim
    return tuple(codes) if all(c < ndim for c in codes) else None


def spec_from_codes(codes: tuple[int, ...], ndim: int, names: tuple[str, ...]) -> PartitionSpec:
    """Return the `PartitionSpec` of an ``ndim``-d array under ``codes``: partial sums are unreduced."""
    dims = [tuple(n for n, c in zip(names, codes, strict=True) if c == d) for d in range(ndim)]
    partial = {n for n, c in zip(names, codes, strict=True) if c == P}
    while dims and not dims[-1]:  # as JAX gives the shardings of results
        dims.pop()
    return PartitionSpec(*[e[0] if len(e) == 1 else e or None for e in dims], unreduced=partial)


def to_sbp(codes: tuple[int, ...]) -> tuple[sbp, ...]:
    """Return the nd-sbp of codes."""
    return tuple(map(from_code, codes))


def shift_splits(codes: tuple[int, ...], by: int) -> tuple[int, ...]:
    """Return the codes with split dims shifted by ``by``: of a stack of the tensor, or (-1) of a slice of it."""
    return tuple(c + by if c >= 0 else c for c in codes)
