"""Layouts: interning, the balanced rule, and the physical array against parts computed by hand."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec

from sbpjax.errors import SbpError
from sbpjax.sbp import even_split
from sbpjax.sbp.algebra import B, P, codes_from_spec
from sbpjax.sbp.layout import Layout, layout_of, local_shape
from sbpjax.sbp.placement import placement

P4 = placement("cpu", [0, 1, 2, 3])
P22 = placement("cpu", [[0, 1], [2, 3]])
P24 = placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])


@pytest.mark.parametrize(
    "n, sizes, expected",
    [
        (7, (4,), [(0, 2), (2, 2), (4, 2), (6, 1)]),
        (3, (4,), [(0, 1), (1, 1), (2, 1), (3, 0)]),
        (0, (2,), [(0, 0), (0, 0)]),
        (6, (2, 2), [(0, 2), (2, 1), (3, 2), (5, 1)]),
        (5, (2, 2), [(0, 2), (2, 1), (3, 1), (4, 1)]),
        (8, (2, 2), [(0, 2), (2, 2), (4, 2), (6, 2)]),
    ],
)
def test_the_balanced_rule(n, sizes, expected):
    assert list(even_split.parts(n, sizes)) == expected


@given(st.integers(0, 200), st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_parts_tile_the_dim(n, sizes):
    parts = even_split.parts(n, tuple(sizes))
    assert [o for o, _ in parts] == list(itertools.accumulate([0] + [c for _, c in parts[:-1]]))
    assert sum(c for _, c in parts) == n
    assert max(c for _, c in parts) == even_split.shard_size(n, tuple(sizes))
    assert even_split.even(n, tuple(sizes)) == (len({c for _, c in parts}) == 1)
    for index, part in zip(np.ndindex(*sizes), parts, strict=True):
        assert even_split.nested_part(n, tuple(sizes), tuple(int(i) for i in index)) == part


def test_the_rule_on_traced_indices():
    parts = jax.jit(lambda i: even_split.nested_part(7, (2, 2), (i // 2, i % 2)))
    assert [tuple(int(x) for x in parts(i)) for i in range(4)] == list(even_split.parts(7, (2, 2)))


def test_equal_layouts_are_one_object():
    first = Layout(P22, "S0,B", (6, 4), "float32")
    assert first is Layout(placement("cpu", [[0, 1], [2, 3]]), ["S0", "B"], [6, 4], np.float32)
    assert first is layout_of(P22, (0, B), (6, 4), np.dtype("float32"))
    assert first is not Layout(P22, "B,S0", (6, 4), "float32")
    assert first.with_codes((B, 0)) is Layout(P22, "B,S0", (6, 4), "float32")
    assert repr(first).startswith("Layout(float32[6, 4] as S0,B on ")


@pytest.mark.parametrize(
    "place, codes, shape, physical, spec",
    [
        (P4, (0,), (8, 4), (8, 4), ("a0", None)),
        (P4, (1,), (8, 7), (8, 8), (None, "a0")),
        (P4, (B,), (8, 4), (8, 4), (None, None)),
        (P4, (P,), (8, 4), (4, 8, 4), ("a0", None, None)),
        (P4, (P,), (), (4,), ("a0",)),
        (P4, (0,), (3,), (4,), ("a0",)),
        (P22, (0, 0), (5, 4), (8, 4), (("a0", "a1"), None)),
        (P22, (P, P), (5,), (2, 2, 5), ("a0", "a1", None)),
        (P22, (0, P), (6, 4), (2, 6, 4), ("a1", "a0", None)),
        (P22, (1, 0), (5, 3), (6, 4), ("a1", "a0")),
        (P24, (0, P), (6, 4), (4, 6, 4), ("a1", "a0", None)),
        (P4, (0,), (0, 2), (0, 2), ("a0", None)),
    ],
)
def test_physical_array(place, codes, shape, physical, spec):
    layout = layout_of(place, codes, shape, np.dtype("float32"))
    assert layout.physical_shape == physical
    assert layout.spec == PartitionSpec(*spec)
    # What each device holds has the local shape, behind one leading dim per partial axis.
    block = layout.sharding.shard_shape(physical)
    assert block == (1,) * len(layout.partial_axes) + layout.local_shape
    assert layout.local_shape == local_shape(shape, codes, place.hierarchy)


def test_parts_and_evenness():
    layout = Layout(P22, "S0,S0", (5, 2), "int32")
    assert layout.parts() == [((0, 2), (0, 2)), ((2, 1), (0, 2)), ((3, 1), (0, 2)), ((4, 1), (0, 2))]
    assert not layout.is_even and Layout(P22, "S0,S0", (8, 2), "int32").is_even
    assert layout.nbytes == 40
    assert layout.axes_of_dim == ((0, 1), ())


def test_specs_both_ways():
    for codes in itertools.product((0, 1, B), repeat=2):
        layout = layout_of(P22, codes, (4, 4), np.dtype("float32"))
        assert codes_from_spec(layout.spec, P22.axis_names, 2) == codes
    assert codes_from_spec(PartitionSpec(), P22.axis_names, 2) == (B, B)
    assert codes_from_spec(PartitionSpec(("a1", "a0")), P22.axis_names, 2) is None  # not in mesh-major order


def test_random_keys_have_layouts():
    keys = jax.random.split(jax.random.key(0), 5)
    layout = layout_of(P4, (0,), keys.shape, keys.dtype)
    assert layout.physical_shape == (8,) and layout is layout_of(P4, (0,), (5,), keys.dtype)


def test_a_split_needs_its_dim():
    with pytest.raises(SbpError):
        Layout(P4, "S2", (3, 4), "float32")
