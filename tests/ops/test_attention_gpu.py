"""cuDNN's attention: what it takes, and its calls in programs for absent GPUs."""

import jax
import numpy as np
import pytest

from sbpjax.ops import attention_gpu
from sbpjax.ops.attention import scaled_dot_product_attention as sdpa
from sbpjax.sbp import placement


def test_what_stays_with_the_blocks():
    def takes(dtype="bfloat16", width=64, values=64, keys=128, mask=None, causal=False):
        q, k, v = (jax.ShapeDtypeStruct(s, dtype) for s in ((2, 2, 128, width), (2, keys, width), (2, keys, values)))
        return attention_gpu.takes(q, k, v, mask, causal)

    assert takes() and takes("float16", causal=True) and takes(keys=100)
    assert not takes("float32")
    assert not takes(width=20, values=20) and not takes(values=32) and not takes(width=256, values=256)
    assert not takes(keys=100, causal=True)
    assert not takes(mask=jax.ShapeDtypeStruct((2, 1, 1, 128), bool))


@pytest.mark.aot
def test_compiled_for_a_gpu():
    pytest.importorskip("jax_cuda12_plugin", reason="needs jax-cuda12-plugin and jax-cuda12-pjrt (extra `aot`)")
    pytest.importorskip("nvidia.cudnn", reason="needs nvidia-cudnn-cu12")
    place = placement.topology("h100:4", [4])
    split = jax.sharding.PartitionSpec(*place.axis_names)

    def grad(q, k, v):
        def total(*x):
            return sdpa(*x, is_causal=True, enable_gqa=True).astype(np.float32).sum()

        return jax.grad(total, (0, 1, 2))(q, k, v)

    sharding = jax.sharding.NamedSharding(place.mesh, split)
    shapes = [(4, 16, 2048, 128), (4, 4, 2048, 128), (4, 4, 2048, 128)]
    arrays = [jax.ShapeDtypeStruct(s, "bfloat16", sharding=sharding) for s in shapes]
    run = jax.shard_map(grad, mesh=place.mesh, in_specs=split, out_specs=split, check_vma=False)
    text = jax.jit(run).lower(*arrays).compile().as_text()
    assert "__cudnn$fmhaSoftmax" in text and "__cudnn$fmhaSoftmaxBackward" in text
