"""JAX's splash attention against the blocks: interpreted here, and compiled for absent TPUs."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax.ops import attention_blocks, attention_tpu
from sbpjax.ops.attention import scaled_dot_product_attention as sdpa
from tests.support.attention_cases import assert_as_composed


def compare(shape, t, s, d=16, dtype="float32", mask=None, causal=False):
    rng = np.random.default_rng(t + s)
    *lead, _ = shape
    q, ct = (jnp.asarray(rng.standard_normal((*shape, t, d)), dtype) for _ in range(2))
    k, v = (jnp.asarray(rng.standard_normal((*lead, s, d)), dtype) for _ in range(2))
    assert attention_tpu.takes(q, k, v, mask, causal)
    found = []
    for run, how in ((attention_tpu, {"interpret": True}), (attention_blocks, {})):
        how = {**how, "scale": 0.2, "causal": causal}
        out, lse = jax.jit(lambda *x, run=run, how=how: run.forward(*x, **how))(q, k, v, mask)
        grads = jax.jit(lambda *x, run=run, how=how: run.backward(*x, **how))(q, k, v, mask, out, lse, ct)
        found.append([out, *grads])
    assert_as_composed(*found, dtype)


@pytest.mark.parametrize(
    ("shape", "t", "s", "dtype", "causal"),
    [
        ((1, 2, 2), 200, 200, "float32", True),
        ((2, 1, 1), 130, 256, "bfloat16", False),
        ((1, 1, 3), 300, 140, "float32", True),
        ((2, 2, 1), 256, 256, "float32", False),
    ],
)
def test_as_the_blocks(shape, t, s, dtype, causal):
    compare(shape, t, s, dtype=dtype, causal=causal)


def test_keys_that_are_hidden():
    mask = np.random.default_rng(0).random((2, 1, 1, 1, 140)) < 0.5
    mask[1] = False  # rows without any key
    compare((2, 2, 2), 150, 140, mask=jnp.asarray(mask))


def test_what_stays_with_the_blocks():
    q, k = (jax.ShapeDtypeStruct(s, "float32") for s in ((1, 1, 256, 8), (1, 256, 8)))
    assert not attention_tpu.takes(q, k, k, jax.ShapeDtypeStruct((1, 1, 256, 256), bool), False)
    assert not attention_tpu.takes(q, k, k, jax.ShapeDtypeStruct((1, 1, 1, 256), "float32"), False)
    double = jax.ShapeDtypeStruct(q.shape, "float64")
    assert not attention_tpu.takes(double, double, double, None, False)


@pytest.mark.aot
def test_compiled_for_a_tpu():
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    devices = topologies.get_topology_desc("v5p:2x2x1", platform="tpu").devices
    split = PartitionSpec("d")
    mesh = Mesh(np.array(devices), ("d",))

    def grad(q, k, v):
        def out(*x):
            return sdpa(*x, is_causal=True, enable_gqa=True).astype(np.float32).sum()

        return jax.grad(out, (0, 1, 2))(q, k, v)

    shapes = [(4, 16, 4096, 128), (4, 4, 4096, 128), (4, 4, 4096, 128)]
    arrays = [jax.ShapeDtypeStruct(s, "bfloat16", sharding=NamedSharding(mesh, split)) for s in shapes]
    run = jax.shard_map(grad, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)
    program = jax.jit(run).lower(*arrays).compile()
    assert program.as_text().count("tpu_custom_call") >= 3  # forward, and dq and dk, dv
    assert program.memory_analysis().temp_size_in_bytes < 200e6  # the scores alone are 1 GB
