"""The links of mesh axes: networks between hosts, the torus of a TPU, and which prices a placement has."""

from types import SimpleNamespace

import numpy as np
import pytest

import sbpjax as flow
from sbpjax._core.planner.prices import cost, links
from sbpjax._core.planner.prices.cost import Link

H100 = cost.preset("h100")


def gpus(shape, each, name="h100:2x8"):
    """Return what `links` asks of a placement of GPUs, `each` per host."""
    ranks = np.arange(int(np.prod(shape))).reshape(shape)
    return SimpleNamespace(
        type="cuda", hierarchy=shape, ranks=ranks, topology_name=name.replace("8", str(each)), devices=ranks
    )


def test_the_outer_axis_between_hosts_is_the_network():
    model = links.with_placement_links(H100, gpus((2, 8), 8))
    assert [link.bytes_per_s for link in model.links] == [50e9, 450e9]


def test_the_ranks_of_a_host_share_the_network():
    fast = H100.with_latency(0.005)
    assert (
        links.with_placement_links(fast, gpus((16,), 8)).links == ()
    )  # 750 GB/s of adapters per group: NVLink bounds it
    assert links.with_placement_links(H100, gpus((16,), 8)).links == (
        Link(18.0, 450e9),
    )  # but a collective starts as slowly
    (link,) = links.with_placement_links(H100, gpus((4,), 2, "h100:2x8")).links
    assert link.bytes_per_s == pytest.approx(3 / 4 * 2 * 50e9 / (1 / 2))


def test_latency_between_hosts_is_the_networks():
    model = links.with_placement_links(H100, gpus((2, 8), 8))
    assert [link.alpha_us for link in model.links] == [18.0, 10.0]
    assert model.interconnect_us(50e3, 0) == pytest.approx(18.0 + 1.0)
    assert model.on((1,)).interconnect_us(450e3, 0) == pytest.approx(10.0 + 1.0)
    assert model.interconnect_us(50e3) == pytest.approx(18.0 + 1.0)  # of no known axis: the slowest


def test_an_axis_of_a_torus_has_the_links_along_it():
    coords = [SimpleNamespace(coords=(x, y, z)) for x in range(4) for y in range(4) for z in range(4)]
    place = SimpleNamespace(
        type="tpu", topology_name=None, hierarchy=(16, 4), devices=np.array(coords, object).reshape(16, 4)
    )
    model = links.with_placement_links(cost.preset("v5p"), place)
    assert [link.bytes_per_s for link in model.links] == pytest.approx([400e9, 200e9])


@pytest.mark.parametrize(
    ("torus", "hierarchy", "written"),
    [
        ((2, 2, 1), (4,), [()]),
        ((2, 2, 2), (8,), [("psum_scatter",)]),
        ((2, 2, 2), (2, 4), [(), ()]),
        ((2, 4, 4), (32,), [("psum_scatter",)]),
        ((4, 4, 4), (64,), [("all_gather", "psum_scatter")]),
        ((4, 4, 4), (32, 2), [(), ()]),
    ],
)
def test_over_a_whole_torus_of_three_dims_the_compiler_writes_all_reduces(torus, hierarchy, written):
    chips = [SimpleNamespace(coords=c) for c in np.ndindex(torus)]
    place = SimpleNamespace(
        type="tpu", topology_name=None, hierarchy=hierarchy, devices=np.array(chips, object).reshape(hierarchy)
    )
    model = links.with_placement_links(cost.preset("v5p"), place)
    assert [model.link(a).as_all_reduce for a in range(len(hierarchy))] == written


def test_oneflow_counts_the_bytes_of_all_ranks():
    place = flow.placement("cpu", np.arange(8).reshape(2, 4))
    model = links.with_placement_links(cost.preset("oneflow"), place)
    assert [model.interconnect_us(1000, a) for a in (0, 1)] == pytest.approx([16500 + 2000, 16500 + 4000])


def test_a_placement_has_the_prices_of_its_devices():
    assert links.of_placement(flow.placement("cpu", [0, 1])) == cost.DEFAULT
    assert links.of_placement(gpus((8,), 8, "h200:8")).name == "h200"


def test_measured_prices_win_and_can_be_forgotten():
    place = flow.placement("cpu", [0, 1, 2, 3])
    model = cost.CostModel("here", 1e9, 1e9, 1e9, 1e9, 1e9, 7.0)
    links.remember(place, model)
    try:
        assert links.of_placement(place) == model
        assert links.of_placement(flow.placement("cpu", [[0, 1], [2, 3]])) == model
        assert links.of_placement(flow.placement("cpu", [0, 1])) == cost.DEFAULT
    finally:
        links.forget(place)
    assert links.of_placement(place) == cost.DEFAULT


def test_a_link_is_a_latency_and_a_bandwidth():
    model = cost.CostModel("two", 1e12, 1e12, 1e9, 1e9, 1e9, links=(Link(5.0, 1e6), Link(1.0, 1e9)))
    assert (model.interconnect_us(10, 0), model.interconnect_us(1000, 1)) == pytest.approx((15.0, 2.0))
    assert model.interconnect_us(0, 0) == 0
