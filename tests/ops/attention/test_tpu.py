"""JAX's splash attention against the blocks: interpreted here, and compiled for absent TPUs."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.ops.attention import blocks as attention_blocks
from sbpjax._core.ops.attention import tpu as attention_tpu
from sbpjax._core.ops.attention.attention import scaled_dot_product_attention as sdpa
from sbpjax._core.ops.attention.scores import CAUSAL, EVERY_KEY, Scores
from tests.support.attention_cases import assert_as_composed


def compare(shape, t, s, d=16, dtype="float32", mask=None, causal=False, segments=None, **how):
    rng = np.random.default_rng(t + s)
    *lead, _ = shape
    q, ct = (jnp.asarray(rng.standard_normal((*shape, t, d)), dtype) for _ in range(2))
    k, v = (jnp.asarray(rng.standard_normal((*lead, s, d)), dtype) for _ in range(2))
    how = Scores(**{"scale": 0.2, "window": CAUSAL if causal else EVERY_KEY, **how})
    assert attention_tpu.unsupported_reason(q, k, v, mask, segments, how) is None
    found = []
    for module, options in ((attention_tpu, {"interpret": True}), (attention_blocks, {})):

        def run(*x, module=module, options=options):
            out, lse = module.forward(*x, segments, how, **options)
            return [out, *module.backward(*x, segments, how, out, lse, ct, **options)]

        found.append(jax.jit(run)(q, k, v, mask))
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


@pytest.mark.parametrize(
    ("t", "s", "how"),
    [
        (200, 200, {"window": (30, 0)}),
        (300, 140, {"window": (20, 0), "soft_cap": 0.5}),  # rows without any key
        (140, 300, {"window": (40, 10)}),
        (130, 256, {"window": (None, 60), "soft_cap": 0.7}),
    ],
)
def test_windows_and_soft_caps(t, s, how):
    compare((1, 2, 2), t, s, **how)


@pytest.mark.parametrize("window", [EVERY_KEY, (60, 0)])
def test_segments(window):
    rng = np.random.default_rng(0)
    of_queries, of_keys = (jnp.asarray(np.sort(rng.integers(0, 4, (2, 1, n)), -1), np.int32) for n in (200, 140))
    mask = jnp.asarray(rng.random((2, 1, 1, 1, 140)) < 0.8)
    compare((2, 2, 1), 200, 140, segments=(of_queries, of_keys), mask=mask, window=window)


def test_what_stays_with_the_blocks():
    q, k = (jax.ShapeDtypeStruct(s, "float32") for s in ((1, 1, 256, 8), (1, 256, 8)))
    for mask in (jax.ShapeDtypeStruct((1, 1, 256, 256), bool), jax.ShapeDtypeStruct((1, 1, 1, 256), "float32")):
        assert "masks of bools for keys" in attention_tpu.unsupported_reason(q, k, k, mask, None, Scores(1.0))
    double = jax.ShapeDtypeStruct(q.shape, "float64")
    assert "float64" in attention_tpu.unsupported_reason(double, double, double, None, None, Scores(1.0))


@pytest.mark.aot
@pytest.mark.parametrize(
    ("how", "segmented"),
    [({"is_causal": True}, False), ({"window_size": (1023, 0), "soft_cap": 50.0}, False), ({"is_causal": True}, True)],
    ids=["causal", "window and soft cap", "segments"],
)
def test_compiled_for_a_tpu(how, segmented):
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    devices = topologies.get_topology_desc("v5p:2x2x1", platform="tpu").devices
    split = PartitionSpec("d")
    mesh = Mesh(np.array(devices), ("d",))

    def grad(q, k, v, ids):
        def out(*x):
            segments = (ids, ids) if segmented else (None, None)
            return sdpa(*x, None, None, *segments, enable_gqa=True, **how).astype(np.float32).sum()

        return jax.grad(out, (0, 1, 2))(q, k, v)

    shapes = [((4, 16, 4096, 128), "bfloat16"), *[((4, 4, 4096, 128), "bfloat16")] * 2, ((4, 4096), "int32")]
    arrays = [jax.ShapeDtypeStruct(*x, sharding=NamedSharding(mesh, split)) for x in shapes]
    run = jax.shard_map(grad, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)
    program = jax.jit(run).lower(*arrays).compile()
    text = program.as_text()
    assert text.count("tpu_custom_call") >= 3  # forward, and dq and dk, dv
    assert ("splash_mqa_fwd_segmented" in text) == segmented
    assert program.memory_analysis().temp_size_in_bytes < 200e6  # the scores alone are 1 GB
