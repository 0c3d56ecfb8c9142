"""Machines: the link of each axis, inside hosts, between them, and on a torus."""

import pytest

from sbpjax.errors import PlacementError
from sbpjax.plan import machine

NVLINK, ADAPTER, CHIP = 450e9, 50e9, 600e9


def links(name, **sizes):
    there = machine(name)
    return {axis: link.bytes_per_s / there.chip.efficiency.links for axis, link in there.links(sizes).items()}


def test_an_axis_that_fills_the_host_leaves_others_the_network():
    found = links("h100:4x8", tensor=8, fsdp=4)
    assert found == {"tensor": NVLINK, "fsdp": ADAPTER}


def test_ranks_of_a_host_share_their_adapters():
    assert links("h100:4x8", tensor=4, fsdp=8)["fsdp"] == pytest.approx(7 / 8 * 2 * ADAPTER / (3 / 4))
    assert links("h100:4x8", fsdp=32)["fsdp"] == NVLINK  # eight adapters bring more


def test_an_axis_takes_whole_dims_of_the_torus():
    assert links("v5p:4x4x8", tensor=8, fsdp=16) == {"tensor": CHIP / 3, "fsdp": 2 * CHIP / 3}
    assert links("v5e:16x16", fsdp=256) == {"fsdp": 200e9}


def test_a_part_of_a_dim_is_a_line_of_half_the_bandwidth():
    found = links("v5p:8x8x8", tensor=4, fsdp=128)
    assert found["tensor"] == CHIP / 6
    # Two whole dims, and the rest of the first, where four transfers share each link.
    assert found["fsdp"] == pytest.approx((2 + 1 / 4) * CHIP / 3)


def test_axes_of_one_dim_share_its_links():
    found = links("v5e:16x16", tensor=4, context=16, fsdp=2, data=2)
    assert found["tensor"] == found["context"] / 2 == CHIP / 6 * (200 / 600) * 3 / 2
    assert found["fsdp"] == found["tensor"] / 4 and found["data"] == pytest.approx(found["context"] / 8)


def test_latency_grows_with_the_hosts_of_an_axis():
    few, many = (machine(f"h100:{n}x8").links({"fsdp": 8 * n})["fsdp"].alpha_us for n in (2, 16))
    assert many - few == pytest.approx(14 * 2.7 + (112 - 14) * 0.47)


def test_slices_share_the_data_centre_network():
    assert machine("v5e:16x16").network() is None
    there = machine("32*v5e:16x16")
    assert there.chips == 8192 and there.name == "32*v5e:16x16"
    assert there.network().bytes_per_s == pytest.approx(6.4e12 / 8 / 256 * 0.5)


@pytest.mark.parametrize("name", ["v5p", "v9:4x4", "v5p:4x-1", "h100:2x2x2", "0*v5e:16x16", "2*h100:4x8", "cpu:8"])
def test_other_names_are_refused(name):
    with pytest.raises(PlacementError, match=r'e\.g\.|machine\("h100:64x8"\)'):
        machine(name)
