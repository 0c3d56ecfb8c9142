"""JAX's megablox against the tiles: interpreted here, and compiled for absent TPUs."""

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.ops.grouped_matmul import grouped_matmul
from sbpjax._core.ops.grouped_matmul import tpu as grouped_matmul_tpu
from sbpjax._core.ops.grouped_matmul.primitive import grouped_matmul as run

SIZES = [[70, 0, 130, 20], [0, 0, 1, 0], [256, 0, 0, 0]]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("transposed", [False, True])
def test_as_the_tiles(sizes, transposed):
    rng = np.random.default_rng(0)
    x, y = (jnp.asarray(rng.standard_normal((256, n)), "float32") for n in (48, 160))
    w = jnp.asarray(rng.standard_normal((4, 160, 48) if transposed else (4, 48, 160)), "float32")
    sizes = jnp.asarray(sizes, np.int32)
    starts, filled = jnp.cumsum(sizes) - sizes, int(sizes.sum())
    spans = (starts.astype(np.int32)[None], sizes[None])
    assert grouped_matmul_tpu.supports_matmul(x[None], w, transposed) and grouped_matmul_tpu.supports_outer(
        x[None], y[None]
    )
    kernel = jax.jit(functools.partial(grouped_matmul_tpu.matmul, transposed=transposed, interpret=True))
    want = grouped_matmul.matmul(x[None], w, *spans, transposed=transposed)[0]
    np.testing.assert_allclose(kernel(x, w, sizes)[:filled], want[:filled], rtol=1e-4, atol=1e-4)
    kernel = jax.jit(functools.partial(grouped_matmul_tpu.outer, interpret=True))
    want = grouped_matmul.outer(x[None], y[None], *spans)
    np.testing.assert_allclose(kernel(x, y, sizes), want, rtol=1e-4, atol=1e-4)


def test_rows_of_sequences_are_brought_together():
    rng = np.random.default_rng(1)
    x, sizes = rng.standard_normal((3, 8, 2)), np.array([[2, 3], [0, 0], [1, 7]], np.int32)
    starts = np.array([[0, 4], [0, 0], [7, 0]], np.int32)  # of part of the groups: spans in any order
    (flat,), total, back = grouped_matmul.pack_rows([jnp.asarray(x)], jnp.asarray(starts), jnp.asarray(sizes))
    want = np.concatenate([x[0, :2], x[2, 7:8], x[0, 4:7], x[2, :7]])
    np.testing.assert_array_equal(total, [3, 10])
    np.testing.assert_array_equal(flat[:13], want)
    assert not flat[13:].any()
    own = np.zeros_like(x)
    own[0, :2], own[0, 4:7], own[2] = x[0, :2], x[0, 4:7], x[2]
    np.testing.assert_array_equal(back(flat), own)


def test_what_stays_with_the_tiles():
    x = jax.ShapeDtypeStruct((1, 8, 4), "float64")
    assert not grouped_matmul_tpu.supports_outer(x, x)
    none = jax.ShapeDtypeStruct((1, 0, 4), "float32")
    assert not grouped_matmul_tpu.supports_outer(none, none)


@pytest.mark.aot
@pytest.mark.parametrize("lead, dtype", [((), "bfloat16"), ((4,), "bfloat16"), ((), "float32")])
def test_compiled_for_a_tpu(lead, dtype):
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    devices = topologies.get_topology_desc("v5p:2x2x1", platform="tpu").devices
    mesh, split = Mesh(np.array(devices), ("d",)), PartitionSpec("d")

    def grad(x, w, sizes):
        def loss(x, w):
            return run(x, w, sizes).astype(np.float32).sum()

        return jax.value_and_grad(loss, (0, 1))(x[0], w)

    rows, width, out, groups = 8192 // np.prod(lead, dtype=int), 2048, 4096, 16
    shapes = ((4, *lead, rows, width), dtype), ((groups, width, out), dtype), ((*lead, groups), "int32")
    specs = (split, PartitionSpec(), PartitionSpec())
    arrays = [jax.ShapeDtypeStruct(*s, sharding=NamedSharding(mesh, p)) for s, p in zip(shapes, specs, strict=True)]
    grads = jax.shard_map(
        grad, mesh=mesh, in_specs=specs, out_specs=(PartitionSpec(), (split, PartitionSpec())), check_vma=False
    )
    program = jax.jit(grads).lower(*arrays).compile()
    assert program.as_text().count("tpu_custom_call") >= 3  # the product, and both gradients
    # Three products of each row with one matrix: `jax.lax.ragged_dot` has 16 in the gradient of the matrices.
    assert program.cost_analysis()["flops"] == pytest.approx(3 * 2 * 8192 * width * out, rel=0.01)
    assert program.memory_analysis().temp_size_in_bytes < 200e6
