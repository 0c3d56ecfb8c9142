"""Boxing: values of every conversion, legality and cost of every path, and the bytes of the compiled program."""

import functools
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from sbpjax._core.compiler.hlo import collectives, total_interconnect_bytes
from sbpjax.sbp import boxing
from sbpjax.sbp.algebra import B, P, nd_name
from sbpjax.sbp.conversion_steps import MeshPosition, is_legal_step, kind_of, make_step
from sbpjax.sbp.layout import layout_of, local_shape
from sbpjax.sbp.placement import placement
from tests.programs.rules.strategy_checker import COMPILER, mismatch, stack_blocks, unstack_mismatch

GRIDS = {"2": [0, 1], "4": [0, 1, 2, 3], "2x2": [[0, 1], [2, 3]], "2x4": [[0, 1, 2, 3], [4, 5, 6, 7]]}
CODES = (0, 1, 2, B, P)
# Even; odd sizes; an empty shard on 4 ranks and an uneven nested split; empty tensors.
SHAPES = {"even": (8, 8, 16), "uneven": (5, 7, 3), "nested": (5, 3, 4), "empty": (0, 3, 4)}


def _pairs(grid: str):
    ndim = np.ndim(GRIDS[grid])
    return [
        (s, t) for s in itertools.product(CODES, repeat=ndim) for t in itertools.product(CODES, repeat=ndim) if s != t
    ]


def _convert(value, pairs, place, written=None):
    """Convert a value along every pair in one program and return what the ranks hold."""
    sizes, names, shape = place.hierarchy, place.axis_names, value.shape
    rng = np.random.default_rng(0)
    sources = {s: stack_blocks(value, layout_of(place, s, shape, value.dtype), rng) for s, _ in pairs}

    def body(*stacked):
        blocks = {s: x.reshape(x.shape[len(sizes) :]) for s, x in zip(sources, stacked)}
        here = MeshPosition(sizes, names, written)
        results = []
        for source, target in pairs:
            out = boxing.run(here, blocks[source], shape, source, target)
            assert out.shape == local_shape(shape, target, sizes), f"{nd_name(source)} -> {nd_name(target)}"
            results.append(out.reshape((1,) * len(sizes) + out.shape))
        return results

    spec = PartitionSpec(*names)
    program = jax.jit(jax.shard_map(body, mesh=place.mesh, in_specs=spec, out_specs=spec, check_vma=False))
    return program.lower(*sources.values()).compile(COMPILER)(*sources.values())


def _check_values(value, pairs, place, written=None):
    wrong = []
    tolerance = 0.05 if value.dtype.itemsize == 2 else 1e-6
    results = _convert(value, pairs, place, written)
    for (source, target), got in zip(pairs, results, strict=True):
        layout = layout_of(place, target, value.shape, value.dtype)
        difference = unstack_mismatch(np.asarray(got), layout, value, tolerance if value.dtype.kind in "fcV" else 0)
        if difference:
            wrong.append(f"{nd_name(source)} -> {nd_name(target)}: {difference}")
    assert not wrong, f"{len(wrong)} of {len(pairs)} conversions are wrong:\n" + "\n".join(wrong[:10])


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_that_the_compiler_makes_whole_are_cut_behind_it(shape):
    """Where a reduce-scatter becomes an all-reduce anyway, the sum is asked for as it lies."""
    value = np.random.default_rng(2).standard_normal(SHAPES[shape]).astype(np.float32)
    _check_values(value, [((P,), (d,)) for d in range(3)], placement("cpu", GRIDS["4"]), [("psum_scatter",)])


@pytest.mark.parametrize("shape", SHAPES)
def test_as_it_is_done_where_memory_is_in_tiles(shape):
    """Exchanged shards go with the ranks outermost; sums of what lies transposed are made whole and cut."""
    value = np.random.default_rng(5).standard_normal(SHAPES[shape]).astype(np.float32)
    _check_values(value, _pairs("4"), placement("cpu", GRIDS["4"]), [()])


def test_tables_that_lie_transposed_are_cut_behind_their_sum():
    value = np.random.default_rng(6).standard_normal((1000, 24)).astype(np.float32)
    pairs = [((P,), (0,)), ((P,), (1,)), ((0,), (1,)), ((1,), (0,))]
    assert boxing.path(value.shape, 4, (4,), *pairs[0])[0].within_tiles
    _check_values(value, pairs, placement("cpu", GRIDS["4"]), [()])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("grid", ["2", "4"])
def test_every_pair_on_one_axis(grid, shape):
    value = np.random.default_rng(1).standard_normal(SHAPES[shape]).astype(np.float32)
    _check_values(value, _pairs(grid), placement("cpu", GRIDS[grid]))


@pytest.mark.parametrize(
    "shape, every",
    [
        *[("nested", 3), ("even", 5), ("uneven", 7), ("empty", 1)],
        *(pytest.param(s, 1, marks=pytest.mark.exhaustive) for s in SHAPES if s != "empty"),
    ],
)
def test_every_pair_on_two_axes(shape, every):
    # Of the 600 pairs samples on sizes that leave an empty shard, a nested uneven, an even and an uneven split.
    value = np.random.default_rng(2).standard_normal(SHAPES[shape]).astype(np.float32)
    pairs, place = _pairs("2x2")[::every], placement("cpu", GRIDS["2x2"])
    for start in range(0, len(pairs), 200):
        _check_values(value, pairs[start : start + 200], place)


def test_nested_splits_on_unequal_axes():
    # (S0, S0) -> (B, S0) is not one all-gather: the inner cut lies inside the outer one.
    for n in (9, 3):
        value = np.arange(n * 2, dtype=np.float32).reshape(n, 2)
        codes = (0, B, P)
        pairs = [
            (s, t) for s in itertools.product(codes, repeat=2) for t in itertools.product(codes, repeat=2) if s != t
        ]
        _check_values(value, pairs, placement("cpu", GRIDS["2x4"]))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, bool, jnp.bfloat16, np.float16, np.complex64])
@pytest.mark.parametrize("shape", ["even", "uneven"])
def test_dtypes(dtype, shape):
    value = (np.random.default_rng(3).standard_normal(SHAPES[shape]) * 4).astype(dtype)
    if np.dtype(dtype).kind == "b":
        value = value & (np.random.default_rng(4).integers(0, 2, value.shape) > 0)
    _check_values(value, _pairs("4"), placement("cpu", GRIDS["4"]))


def test_order_of_ranks_is_meaningful():
    value = np.arange(14, dtype=np.float32).reshape(7, 2)
    place = placement("cpu", [3, 1, 0, 2])
    (result,) = _convert(value, [((B,), (0,))], place)
    by_device = {s.device.id: np.asarray(s.data)[0] for s in result.addressable_shards}
    assert mismatch(by_device[3], value[0:2], 0) is None
    assert mismatch(by_device[2][:1], value[6:7], 0) is None


# --- paths -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(64, 32), (64,)])
@pytest.mark.parametrize("sizes", [(2, 2, 4), (4, 8), (2, 2, 2)])
def test_a_sum_over_all_axes_crosses_the_outer_one_in_parts(sizes, shape):
    """Scatters inside, the sum across, gathers inside: over the outer axis 1/8 of a flat sum's bytes in 2 x (2 x 4)."""
    ndim, inner = len(sizes), math.prod(sizes[1:])
    steps = boxing.path(shape, 4, sizes, (P,) * ndim, (B,) * ndim)
    kinds = [s.kind for s in steps]
    assert kinds == ["psum_scatter"] * (ndim - 1) + ["psum"] + ["all_gather"] * (ndim - 1)
    flat = make_step(shape, 4, sizes, (P,) * ndim, 0, B)
    assert sum(s.bytes for s in steps if s.axis == 0) * inner == flat.bytes


def test_the_compiled_sum_crosses_the_outer_axis_in_parts():
    value = np.random.default_rng(7).standard_normal((64, 32)).astype(np.float32)
    place = placement("cpu", np.arange(8).reshape(2, 2, 2))
    pair = ((P, P, P), (B, B, B))
    _check_values(value, [pair], place)
    layout = layout_of(place, pair[0], value.shape, value.dtype)
    stacked = stack_blocks(value, layout, np.random.default_rng(0))
    spec = PartitionSpec(*place.axis_names)

    def body(x):
        here = MeshPosition(place.hierarchy, place.axis_names, None)
        return boxing.run(here, x.reshape(x.shape[3:]), value.shape, *pair)[None, None, None]

    mapped = jax.jit(jax.shard_map(body, mesh=layout.sharding.mesh, in_specs=spec, out_specs=spec, check_vma=False))
    found = {(c.kind, c.group): c.interconnect_bytes for c in collectives(mapped.lower(stacked).compile().as_text())}
    # The outer sum is of a quarter; the compiler keeps the kinds, whose groups all have two ranks.
    assert found["all-reduce", 2] == value.nbytes / 4


SIXTEEN = """
import numpy as np
import sbpjax as flow
from sbpjax._core.compiler.hlo import collectives

place = flow.placement("cpu", np.arange(16).reshape(2, 2, 4))
a, b = (np.random.default_rng(i).integers(-4, 5, (64, 64)).astype(np.float32) for i in (0, 1))
x = flow.tensor(a, placement=place, sbp=[flow.sbp.split(1)] * 3)
y = flow.tensor(b, placement=place, sbp=[flow.sbp.split(0)] * 3)


class Product(flow.nn.Graph):
    def build(self, x, y):
        return (x @ y).to_global(sbp=[flow.sbp.broadcast] * 3)


graph = Product()
assert all(np.array_equal(part.data, a @ b) for part in graph(x, y).jax().addressable_shards)
(across,) = [c for c in collectives(graph.hlo(x, y)) if c.kind == "all-reduce"]
assert across.group == 2 and across.interconnect_bytes * 8 == a.nbytes, across
"""


@pytest.mark.exhaustive
def test_a_sum_of_two_slices_of_eight_ranks():
    """Integers, so that the sum is exact in any order: equal on all ranks, and 1/8 of a flat sum's bytes across."""
    env = {**os.environ, "SBPJAX_CPU_DEVICES": "16", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", SIXTEEN], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("shape", SHAPES.values())
@pytest.mark.parametrize("sizes", [(4,), (2, 2), (2, 4)])
def test_paths_are_legal_and_chain(shape, sizes):
    for source in itertools.product(CODES, repeat=len(sizes)):
        for target in itertools.product(CODES, repeat=len(sizes)):
            codes = source
            for step in boxing.path(shape, 4, sizes, source, target):
                assert is_legal_step(codes, step.axis, step.target)
                assert step.source == codes[step.axis] and step.kind == kind_of(step.source, step.target)
                codes = (*codes[: step.axis], step.target, *codes[step.axis + 1 :])
            assert codes == target


def _brute_force(shape, sizes, longest):
    """Return the least price of every (source, target) over all legal sequences of at most `longest` steps."""
    states = list(itertools.product((*range(len(shape)), B, P), repeat=len(sizes)))
    best = {(s, s): 0 for s in states}
    for _ in range(longest):
        for (source, codes), spent in list(best.items()):
            for axis, choice in itertools.product(range(len(sizes)), (*range(len(shape)), B, P)):
                if choice == codes[axis] or not is_legal_step(codes, axis, choice):
                    continue
                after = (*codes[:axis], choice, *codes[axis + 1 :])
                price = spent + make_step(shape, 4, sizes, codes, axis, choice).price
                if price < best.get((source, after), math.inf):
                    best[source, after] = price
    return best


@pytest.mark.parametrize("shape, sizes", [((8, 12), (2, 2)), ((5, 7), (2, 2)), ((16, 3), (2, 4)), ((6, 4, 5), (4,))])
def test_paths_are_the_cheapest(shape, sizes):
    for (source, target), price in _brute_force(shape, sizes, 5).items():
        assert boxing.cost(shape, 4, sizes, source, target) == price, f"{nd_name(source)} -> {nd_name(target)}"


def test_one_step_where_one_is_enough():
    kinds = {
        (0, B): ["all_gather"],
        (P, B): ["psum"],
        (P, 1): ["psum_scatter"],
        (0, 1): ["all_to_all"],
        (B, 0): ["slice"],
        (B, P): ["zero_fill"],
        (0, P): ["zero_fill"],
    }
    for (source, target), expected in kinds.items():
        assert [s.kind for s in boxing.path((8, 8), 4, (4,), (source,), (target,))] == expected


def test_bytes_by_hand():
    size = 8 * 8 * 4
    assert boxing.cost((8, 8), 4, (4,), (0,), (B,)) == size * 3 // 4
    assert boxing.cost((8, 8), 4, (4,), (P,), (0,)) == size * 3 // 4
    assert boxing.cost((8, 8), 4, (4,), (P,), (B,)) == 2 * size * 3 // 4
    assert boxing.cost((8, 8), 4, (4,), (0,), (1,)) == size * 3 // 16
    assert boxing.cost((8, 8), 4, (4,), (B,), (1,)) == 0
    assert boxing.cost((8, 8), 4, (4,), (B,), (P,)) == 0
    # The other axis has cut the tensor in half already.
    assert boxing.cost((8, 8), 4, (4, 2), (0, 1), (B, 1)) == size // 2 * 3 // 4


# --- the compiled program --------------------------------------------------------------------------------


@functools.cache
def _compiled(grid, source, target, shape):
    place = placement("cpu", GRIDS[grid])
    names = place.axis_names

    def body(x):
        out = boxing.run(MeshPosition(place.hierarchy, names), x.reshape(x.shape[len(names) :]), shape, source, target)
        return out.reshape((1,) * len(names) + out.shape)

    spec = PartitionSpec(*names)
    program = jax.jit(jax.shard_map(body, mesh=place.mesh, in_specs=spec, out_specs=spec, check_vma=False))
    block = (*place.hierarchy, *local_shape(shape, source, place.hierarchy))
    return program.lower(jax.ShapeDtypeStruct(block, np.float32)).compile().as_text()


def _sampled():
    pairs = [("4", s, t) for s, t in _pairs("4")]
    return pairs + [("2x2", s, t) for s, t in _pairs("2x2")[::23]]


@pytest.mark.parametrize("shape", [(8, 8, 16), (5, 7, 3)], ids=["even", "uneven"])
def test_bytes_are_those_of_the_compiled_program(shape):
    wrong = []
    for grid, source, target in _sampled():
        sizes = np.shape(GRIDS[grid])
        planned = sum(s.bytes for s in boxing.path(shape, 4, sizes, source, target))
        moved = total_interconnect_bytes(_compiled(grid, source, target, shape))
        if planned != moved:
            wrong.append(f"{grid}: {nd_name(source)} -> {nd_name(target)}: planned {planned}, moved {moved}")
    assert not wrong, "\n".join(wrong)
