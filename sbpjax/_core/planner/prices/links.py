"""Interconnect model: the bandwidth of each mesh axis, and the prices of a placement's devices.

    h100:2x8 as [2, 8]     outer axis  50 GB/s (the network between hosts), inner axis 450 GB/s (NVLink)
    h100:2x8 as [16]       450 GB/s: eight adapters per host share the traffic between them
    v5p:4x4x4 as [16, 4]   two thirds and one third of a chip's links
    2*v5p:4x4x4 as [2, 64] outer axis 6.25 GB/s per chip (the data-centre network), inner axis a chip's links

A plan for two axes then puts most traffic on the fast one.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sbpjax.sbp.topology import slices_of

from .cost import DEFAULT, PRESETS, CostModel, Link


def with_placement_links(model: CostModel, placement) -> CostModel:
    """Return a model with the link of every mesh axis of a placement.

    An axis that goes from host to host has the bandwidth of the network as far as the ranks of one host share it: per
    rank of a group of g on h hosts, k each, ``min(interconnect, (g - 1) / g · k · network / (1 - 1 / h))``. So has an
    axis that goes from slice to slice of TPUs. Within a slice an axis has the share of a chip's links along it.
    """
    sizes = tuple(int(n) for n in placement.hierarchy)
    if model.is_summed:
        links = tuple(Link(model.alpha_us, model.interconnect_bytes_per_s / n) for n in sizes)
    elif placement.type == "tpu":
        shares, written = _torus_shares(placement), written_as_all_reduce(placement)
        links = tuple(Link(model.alpha_us, model.interconnect_bytes_per_s * s, w) for s, w in zip(shares, written))
        if model.slices is not None and slices_of(placement.topology_name or "") > 1:
            network = Link(model.slices.alpha_us, model.slices.bytes_per_s * model.efficiency.slices)
            slice_of = {int(r): d.slice_index for r, d in zip(placement.ranks.flat, placement.devices.flat)}
            inside = _ranks_per_group(placement, slice_of.__getitem__)
            links = tuple(
                link if k == n else host_link(model, network, n, k) for link, n, k in zip(links, sizes, inside)
            )
    elif placement.type in ("cuda", "gpu") and model.hosts is not None:
        inside = _ranks_per_group(placement, _host_of(placement))
        links = tuple(host_link(model, model.hosts, n, k) for n, k in zip(sizes, inside))
    else:
        return model
    # Without links of its own a model prices an equation's inner traffic at once, not axis by axis.
    same = Link(model.alpha_us, model.interconnect_bytes_per_s)
    return model if all(link == same for link in links) else dataclasses.replace(model, links=links)


def link_between(model: CostModel, source, target) -> Link:
    """Return the link from the devices of a placement to those of another: the network, if they share no host."""
    hosts = [{int(_host_of(p)(int(rank))) for rank in p.ranks.flat} for p in (source, target)]
    if model.hosts is not None and not hosts[0] & hosts[1]:
        return model.hosts
    return Link(model.alpha_us, model.interconnect_bytes_per_s)


def host_link(model: CostModel, network: Link, size: int, per_host: int) -> Link:
    """Return the link of a group of GPUs of which so many share a host; see `with_placement_links`."""
    hosts = size // per_host
    if hosts <= 1:
        return Link(model.alpha_us, model.interconnect_bytes_per_s)
    outside = (size - 1) / size * per_host * network.bytes_per_s / (1 - 1 / hosts)
    # A model that leaves latency out (the default) leaves the network's out, too.
    alpha = network.alpha_us if model.alpha_us >= 1.0 else model.alpha_us
    return Link(alpha, min(model.interconnect_bytes_per_s, outside))


def _ranks_per_group(placement, group_of) -> list[int]:
    """Return for every mesh axis how many ranks of one of its lines share a host or slice, as a function gives it."""
    host = np.vectorize(group_of, otypes=[np.int64])(np.asarray(placement.ranks))
    found = []
    for axis in range(host.ndim):
        group = np.moveaxis(host, axis, 0).reshape(host.shape[axis], -1)[:, 0]
        found.append(max(1, len(group) // len(set(group.tolist()))))
    return found


def _host_of(placement):
    name = placement.topology_name
    if name is not None:
        each = int(name.partition(":")[2].split("x")[-1])
        return lambda rank: rank // each
    index = {int(r): d.process_index for r, d in zip(placement.ranks.flat, placement.devices.flat, strict=True)}
    if len(set(index.values())) == len(index) > 1:  # a process per device: eight of them make a host
        return lambda rank: rank // 8
    return lambda rank: index[int(rank)]


def _torus_shares(placement) -> list[float]:
    """Return for every mesh axis the share of a chip's links along which it runs."""
    coords = [getattr(d, "coords", None) for d in placement.devices.flat]
    ndim = len(placement.hierarchy)
    if any(c is None for c in coords):  # not every client reports the coordinates of its devices
        return [1.0] * ndim
    grid = np.asarray(coords).reshape(*placement.hierarchy, -1)  # (*hierarchy, dims of the torus)
    whole = int((grid.reshape(-1, grid.shape[-1]).max(0) > grid.reshape(-1, grid.shape[-1]).min(0)).sum())
    shares = []
    for axis in range(ndim):
        lines = np.moveaxis(grid, axis, 0)
        moves = int((lines != lines[:1]).any(axis=tuple(range(ndim))).sum())
        shares.append(max(moves, 1) / max(whole, 1))
    return shares


def written_as_all_reduce(placement) -> list[tuple[str, ...]]:
    """Return for every mesh axis the kinds of collectives that the TPU compiler writes as all-reduces.

    Along an axis that is a whole torus of three dims it makes a reduce-scatter of none, and where all its dims are four
    chips or longer no all-gather either. So libtpu 0.0.42 does on v5p:2x2x2 to 4x4x8.
    """
    coords = [getattr(d, "coords", None) for d in placement.devices.flat]
    sizes = tuple(int(n) for n in placement.hierarchy)
    # Read off compiled programs: run `benchmarks.auto_absent` again with a new libtpu, and drop this when a
    # reduce-scatter over a whole torus stays one.
    found: tuple[str, ...] = ()
    if all(c is not None for c in coords):
        lengths = [len(set(line)) for line in zip(*coords, strict=True)]
        if len(lengths) == 3 and min(lengths) > 1:
            found = ("all_gather", "psum_scatter") if min(lengths) >= 4 else ("psum_scatter",)
    chips = len(set(map(tuple, coords))) if found else 0  # of one slice
    return [found if n == chips else () for n in sizes]


# (device type, ranks) → the hierarchy on which `_core.inspect.auto.calibrate` measured them, and the result
_MEASURED: dict[tuple, tuple[tuple[int, ...], CostModel]] = {}


def remember(placement, model: CostModel) -> None:
    """Let `of_placement` return a measured model for this placement, and for others of the same devices."""
    _MEASURED[_devices_key(placement)] = tuple(placement.hierarchy), model


def forget(placement) -> None:
    """Undo `remember`."""
    _MEASURED.pop(_devices_key(placement), None)


def _devices_key(placement) -> tuple:
    return placement.type, tuple(sorted(int(r) for r in placement.ranks.flat))


_KINDS = (
    ("h200", "h200"), ("h100", "h100"), ("a100", "a100"), ("v6 lite", "v6e"), ("v6e", "v6e"), ("v5 lite", "v5e"),
    ("v5e", "v5e"), ("v5p", "v5p"), ("v5", "v5p"), ("v4", "v4"),
)  # fmt: skip


def of_placement(placement, model: CostModel | None = None) -> CostModel:
    """Return the prices of a placement's devices: measured ones, those of their kind, or the default.

    Args:
        placement: where a program runs.
        model: the prices of one device, if they are known; only the links are taken from the placement then.
    """
    if model is None:
        hierarchy, measured = _MEASURED.get(_devices_key(placement), ((), None))
        if measured is not None:
            # Links were measured along the axes of that grid, and do not apply to another one's.
            return measured if hierarchy == placement.hierarchy else dataclasses.replace(measured, links=())
        model = preset_of(placement)
    return with_placement_links(model, placement)


def preset_of(placement) -> CostModel:
    """Return the prices of the kind of a placement's devices, without its links."""
    if placement.type == "cpu":
        return DEFAULT  # virtual devices simulate others
    text = placement.topology_name or str(getattr(placement.devices.flat[0], "device_kind", ""))
    return next((PRESETS[preset] for part, preset in _KINDS if part in text.lower()), DEFAULT)
