"""cuDNN's attention: what it takes, and its calls in programs for absent GPUs."""

import jax
import numpy as np
import pytest

from sbpjax._core.ops.attention import gpu as attention_gpu
from sbpjax._core.ops.attention.attention import scaled_dot_product_attention as sdpa
from sbpjax._core.ops.attention.scores import CAUSAL, EVERY_KEY, Scores
from sbpjax.sbp import placement


def test_what_stays_with_the_blocks():
    def refusal(dtype="bfloat16", width=64, values=64, keys=128, mask=None, causal=False, segments=None, **how):
        q, k, v = (jax.ShapeDtypeStruct(s, dtype) for s in ((2, 2, 128, width), (2, keys, width), (2, keys, values)))
        how = Scores(**{"scale": 1.0, "window": CAUSAL if causal else EVERY_KEY, **how})
        return attention_gpu.unsupported_reason(q, k, v, mask, segments, how)

    def takes(*args, **kwargs):
        return refusal(*args, **kwargs) is None

    assert takes() and takes("float16", causal=True) and takes(keys=100)
    assert not takes("float32")
    assert not takes(width=20, values=20) and not takes(values=32) and not takes(width=256, values=256)
    assert not takes(keys=100, causal=True)
    assert not takes(mask=jax.ShapeDtypeStruct((2, 1, 1, 128), bool))
    assert takes(window=(16, 0)) and not takes(window=(16, 1)) and not takes(window=(16, None))
    assert not takes(window=(16, 0), keys=100)
    assert "no soft cap" in refusal(soft_cap=30.0)
    assert "no segment ids" in refusal(segments=(jax.ShapeDtypeStruct((2, 128), "int32"),) * 2)


def test_a_program_of_one_device_calls_the_kernel():
    def grad(*x):
        return jax.grad(lambda *x: sdpa(*x, is_causal=True).astype(np.float32).sum(), (0, 1, 2))(*x)

    x = jax.ShapeDtypeStruct((2, 4, 1024, 64), "bfloat16")
    text = jax.jit(grad).trace(x, x, x).lower(lowering_platforms=("cuda",)).as_text()
    assert "@__cudnn$fmhaSoftmax(" in text and "@__cudnn$fmhaSoftmaxBackward(" in text


@pytest.mark.aot
@pytest.mark.parametrize(
    ("how", "segmented", "kernel"),
    [
        ({"is_causal": True}, False, True),
        ({"window_size": (511, 0)}, False, True),
        ({"is_causal": True, "soft_cap": 30.0}, False, False),
        ({"is_causal": True}, True, False),
    ],
    ids=["causal", "window", "soft cap", "segments"],
)
def test_compiled_for_a_gpu(how, segmented, kernel):
    pytest.importorskip("jax_cuda12_plugin", reason="needs jax-cuda12-plugin and jax-cuda12-pjrt (extra `aot`)")
    pytest.importorskip("nvidia.cudnn", reason="needs nvidia-cudnn-cu12")
    place = placement.topology("h100:4", [4])
    split = jax.sharding.PartitionSpec(*place.axis_names)

    def grad(q, k, v, ids):
        def total(*x):
            segments = (ids, ids) if segmented else (None, None)
            return sdpa(*x, None, None, *segments, enable_gqa=True, **how).astype(np.float32).sum()

        return jax.grad(total, (0, 1, 2))(q, k, v)

    sharding = jax.sharding.NamedSharding(place.mesh, split)
    shapes = [((4, 16, 2048, 128), "bfloat16"), *[((4, 4, 2048, 128), "bfloat16")] * 2, ((4, 2048), "int32")]
    arrays = [jax.ShapeDtypeStruct(*x, sharding=sharding) for x in shapes]
    run = jax.shard_map(grad, mesh=place.mesh, in_specs=split, out_specs=split, check_vma=False)
    program = jax.jit(run).lower(*arrays).compile()
    text = program.as_text()
    assert ("__cudnn$fmhaSoftmax" in text and "__cudnn$fmhaSoftmaxBackward" in text) == kernel
    assert ('"sliding_window_length":512' in text.replace(" ", "")) == ("window_size" in how)
    assert program.memory_analysis().temp_size_in_bytes < 200e6  # the scores alone are 268 MB
