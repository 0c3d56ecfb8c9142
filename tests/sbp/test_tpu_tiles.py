"""Shards of a reduce-scatter: every dim of every rank gives what JAX's own gives, and what a TPU sums whole."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from sbpjax._core.compiler import hlo
from sbpjax.sbp.conversion_steps import MeshPosition, _scatter_sum, make_step
from sbpjax.sbp.placement import placement
from sbpjax.sbp.tpu_tiles import has_partial_tiles, keeps_shape, lowers_to_all_reduce, sent_shape

SHAPES = [(8,), (4096,), (8, 6), (6, 8), (4, 1024), (2, 8, 6), (8, 2, 6), (2, 6, 8), (2, 3, 8, 5)]


@pytest.mark.parametrize(("shape", "dim"), [(s, d) for s in SHAPES for d, n in enumerate(s) if n % 4 == 0], ids=str)
def test_each_rank_gets_its_shard(shape, dim):
    where = placement("cpu", range(4))
    (name,) = where.axis_names
    x = np.random.default_rng(0).standard_normal((4, *shape)).astype(np.float32)

    @functools.partial(
        jax.shard_map,
        mesh=where.mesh,
        in_specs=PartitionSpec(name),
        out_specs=PartitionSpec(*[None] * dim, name),
    )
    def run(block):
        return _scatter_sum(block[0], name, 4, dim)

    np.testing.assert_allclose(jax.jit(run)(jnp.asarray(x)), x.sum(0), rtol=1e-5, atol=1e-5)
    text = jax.jit(run).lower(jax.ShapeDtypeStruct(x.shape, x.dtype)).as_text()
    assert ("scatter_dimension = 0" in text) == (not keeps_shape(len(shape), dim))


def test_activations_cut_along_tokens_are_sent_as_they_are():
    assert keeps_shape(3, 1)
    assert not any(keeps_shape(n, d) for n, d in [(1, 0), (2, 0), (2, 1), (3, 0), (3, 2)])
    assert sent_shape((4096, 128)) == (4096, 128)
    assert sent_shape((2, 4096, 128)) == (8192, 128)
    assert sent_shape((4, 1024)) == (32, 128)
    assert sent_shape((1000,)) == (1, 1000)


@pytest.mark.parametrize(
    ("shard", "dim", "whole"),
    [
        ((512,), 0, True),  # 4 rows of 128
        ((1024,), 0, True),  # one tile
        ((2048,), 0, False),
        ((4, 1024), 0, False),
        ((12, 100), 0, False),
        ((9, 128), 0, False),
        ((8, 128), 0, True),
        ((8, 256), 1, False),
        ((80, 128), 1, False),
        ((32, 64), 1, False),
        ((2, 256, 4096), 1, False),
    ],
)
def test_small_sums_that_libtpu_reduces_whole(shard, dim, whole):
    """As found in programs compiled for v5p:4x4x4 in groups of 8, and for v5p:8x8x8 in groups of 64."""
    assert lowers_to_all_reduce(shard, dim) is whole


@pytest.mark.parametrize(
    ("shape", "dim", "within"),
    [
        ((4_000_000, 64), 0, True),  # it lies transposed: 500,000 lanes end within a tile
        ((4_194_304, 64), 0, False),
        ((4_000_000, 64), 1, False),  # eight columns each
        ((4_000_000, 16), 1, True),
        ((4096, 1000), 1, True),  # transposed it pads nothing; 125 columns each
        ((4096, 1024), 1, False),  # it does not lie transposed
        ((8, 400_000, 64), 0, False),
        ((8, 400_000, 64), 1, True),
        ((4096,), 0, False),
    ],
)
def test_shards_that_end_within_tiles_of_what_lies_transposed(shape, dim, within):
    assert has_partial_tiles(shape, 4, 8, dim) is within


@pytest.mark.aot
def test_a_table_that_lies_transposed_is_summed_without_loops():
    """Shards of its rows were brought into one piece by loops."""
    where = placement.topology("v5p:4x4x4", [8, 8])
    shape = (400_000, 64)
    steps = [make_step(shape, 4, (8, 8), (-2, -2), 0, 1), make_step(shape, 4, (8, 8), (1, -2), 1, 0)]
    assert [s.within_tiles for s in steps] == [False, True]

    def run(x):
        here = MeshPosition((8, 8), where.axis_names, [(), ()])
        part = here.convert(x * 2, shape, (-2, -2), steps[0])
        return here.convert(part, shape, (1, -2), steps[1])

    cut = PartitionSpec(where.axis_names[1], where.axis_names[0])
    step = jax.shard_map(run, mesh=where.mesh, in_specs=PartitionSpec(), out_specs=cut, check_vma=False)
    with jax.enable_x64(False):
        x = jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(where.mesh, PartitionSpec()))
        text = jax.jit(step).lower(x).compile().as_text()
    found = {c.kind: c.interconnect_bytes for c in hlo.collectives(text)}
    assert " while(" not in text
    whole = math.prod(shape) * 4
    assert found.pop("all-reduce") == 2 * whole // 8 * 7 // 8
    # 3,125 tiles are padded for the eight chips, and rows of 5 sent where they belong
    assert sum(found.values()) == pytest.approx(whole * 7 // 8, rel=0.015)
    assert found["reduce-scatter"] > 0.99 * sum(found.values())


@pytest.mark.aot
def test_the_tpu_compiler_neither_pads_shards_nor_sums_them_whole():
    """Left where they are, the first two become 72 and 144 rows and fourteen permutes, the third an all-reduce."""
    where = placement.topology("v5p:8x8x8", [64, 8])
    name = where.axis_names[0]
    sums = [((4096, 2048), 0), ((8192, 1024), 0), ((4096, 8192), 1), ((4096,), 0)]

    def run(x):
        made = [jnp.sum(x[: len(shape) + 7].astype(jnp.float32)) * jnp.ones(shape, x.dtype) for shape, _ in sums]
        return [_scatter_sum(y.astype(x.dtype), name, 64, dim) for y, (_, dim) in zip(made, sums, strict=True)]

    specs = [PartitionSpec(*[None] * dim, name) for _, dim in sums]
    step = jax.shard_map(run, mesh=where.mesh, in_specs=PartitionSpec(), out_specs=specs, check_vma=False)
    with jax.enable_x64(False):
        x = jax.ShapeDtypeStruct((16, 128), jnp.bfloat16, sharding=NamedSharding(where.mesh, PartitionSpec()))
        found = hlo.collectives(jax.jit(step).lower(x).compile().as_text())
    moved = {kind: sum(c.interconnect_bytes for c in found if c.kind == kind) for kind in {c.kind for c in found}}
    each = [2 * shape[0] * (shape[1:] or (1,))[0] * 63 // 64 for shape, _ in sums]
    assert moved == {"reduce-scatter": sum(each[:3]), "all-reduce": 2 * each[3]}
