"""Machines as a step's model sees them: chips, their peaks, and the link of each axis of a layout.

    h100:64x8        64 hosts of 8 GPUs: NVLink inside, one network adapter per GPU outside
    v5p:8x16x16      2,048 TPU chips in a torus
    32*v5e:16x16     32 slices of 256 chips, joined by the data-centre network

Axes are laid out from the innermost, which has the fastest links. On GPUs an axis leaves the host when the axes inside
it fill the host; on a torus it takes whole dims as far as its size allows. A part of a dim is a line of half the
bandwidth of a ring; in the rest of that dim neighbours are a stride apart, and as many transfers share each link. The
hardware's figures are the presets of `_core.planner.prices.cost`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sbpjax._core.planner.prices.cost import PRESETS, CostModel, Link
from sbpjax._core.planner.prices.links import host_link
from sbpjax.errors import PlacementError

# NCCL, protocol LL, ring (`src/graph/tuning.cc`): once, per step over NVLink, per step between hosts.
_START_US, _NVLINK_US, _NETWORK_US = 3.6, 0.47, 2.7
_HOP_US = 1.0  # between neighbours of a torus


@dataclass(frozen=True)
class Machine:
    """A machine: slices of equal chips.

    Attributes:
        chip: the prices of one chip.
        dims: of a TPU slice the dims of the torus, of GPUs the number of hosts and the GPUs of one.
        slices: how many slices the data-centre network joins.
    """

    chip: CostModel
    dims: tuple[int, ...]
    slices: int = 1

    @property
    def chips(self) -> int:
        """Chips of all slices."""
        return self.slices * math.prod(self.dims)

    @property
    def name(self) -> str:
        """The text that `machine` reads."""
        return f"{self.slices}*" * (self.slices > 1) + f"{self.chip.name}:{'x'.join(map(str, self.dims))}"

    def links(self, sizes: Mapping[str, int]) -> dict[str, Link]:
        """Return the link of each axis, with the bandwidth that collectives reach on it.

        Args:
            sizes: of the axes of one slice, the innermost first.
        """
        place = self._torus_link if self.chip.torus else self._host_link
        state: list = [(dim, 1) for dim in self.dims] if self.chip.torus else [1]
        share = self.chip.efficiency.links
        found = {}
        for axis, size in sizes.items():
            link = place(size, state)
            found[axis] = Link(link.alpha_us, link.bytes_per_s * share)
        return found

    def _host_link(self, size: int, inner: list[int]) -> Link:
        per_host = max(1, min(size, self.dims[-1] // inner[0]))
        inner[0] *= size
        if size == 1:
            return Link(0.0, self.chip.interconnect_bytes_per_s)
        network = self.chip.hosts or Link(self.chip.alpha_us, self.chip.interconnect_bytes_per_s)
        hosts = max(1, size // per_host)
        alpha = _START_US + _NVLINK_US * (size - hosts) + _NETWORK_US * (hosts - 1)
        return Link(alpha, host_link(self.chip, network, size, per_host).bytes_per_s)

    def _torus_link(self, size: int, free: list[tuple[int, int]]) -> Link:
        """Take an axis's part of the free dims, each with the stride between neighbours, and return its link."""
        each, left, bandwidth, hops = self.chip.interconnect_bytes_per_s / self.chip.torus, size, 0.0, 0.0
        while left > 1:
            fitting = [(dim, stride) for dim, stride in free if dim > 1 and left % dim == 0]
            if fitting:
                taken = max(fitting, key=lambda f: (f[0] == left, f[0], -f[1]))
                free.remove(taken)
                dim, stride = taken
                left //= dim
                bandwidth, hops = bandwidth + each / stride, hops + dim * stride / 2
                continue
            dim, stride = max(((d, s) for d, s in free if d % left == 0 and d > 1), default=(0, 1))
            # A part of a dim, or, where sizes share no factor, a detour that counts as one.
            bandwidth, hops = bandwidth + each / 2 / stride, hops + left * stride
            if dim:
                free[free.index((dim, stride))] = dim // left, stride * left
            break
        return Link(_HOP_US * hops, bandwidth or self.chip.interconnect_bytes_per_s)

    def network(self) -> Link | None:
        """Return one chip's share of the network between slices, at the bandwidth that it reaches."""
        if self.slices == 1 or self.chip.slices is None:
            return None
        return Link(self.chip.slices.alpha_us, self.chip.slices.bytes_per_s * self.chip.efficiency.slices)


def machine(name: str) -> Machine:
    """Return a machine by its name.

    Raises:
        PlacementError: the name is none of ``kind:sizes`` and ``slices*kind:sizes``.

    Example:
        >>> machine("32*v5e:16x16").chips
        8192
    """
    count, star, rest = name.rpartition("*")
    kind, _, size = rest.partition(":")
    sizes = size.split("x")
    chip = PRESETS.get(kind)
    is_sized = all(s.isdecimal() and int(s) > 0 for s in ([count, *sizes] if star else sizes))
    if chip is None or not (chip.torus or chip.hosts) or not is_sized or len(sizes) > max(chip.torus, 2):
        kinds = ", ".join(m.name for m in PRESETS.values() if m.torus or m.hosts)
        rule = f"a machine is kind:sizes or slices*kind:sizes, the kind one of {kinds}; of a GPU hosts×GPUs of a host"
        raise PlacementError(
            f"machine({name!r})", repr(name), rule, 'e.g. machine("v5p:8x16x16"), machine("h100:64x8")'
        )
    dims = tuple(map(int, sizes))
    if not chip.torus and len(dims) == 1:
        dims = (dims[0] // 8, 8) if dims[0] % 8 == 0 else (1, dims[0])
    if star and chip.slices is None:
        rule = "GPUs are joined by the network of their hosts, which h100:hosts×8 has"
        raise PlacementError(f"machine({name!r})", f"{count} slices of {kind}", rule, f'machine("{kind}:64x8")')
    return Machine(chip, dims, int(count) if star else 1)
