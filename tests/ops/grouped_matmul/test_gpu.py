"""JAX's ragged_dot_mgpu: what it takes, and its calls in programs for absent GPUs."""

import jax
import numpy as np
import pytest

from sbpjax._core.ops.grouped_matmul import gpu as grouped_matmul_gpu
from sbpjax._core.ops.grouped_matmul.primitive import grouped_matmul
from sbpjax.sbp import placement


def test_what_stays_with_the_tiles():
    def takes(dtype="bfloat16", rows=100, width=256, out=128):
        x, w = jax.ShapeDtypeStruct((1, rows, width), dtype), jax.ShapeDtypeStruct((4, width, out), dtype)
        return grouped_matmul_gpu.supports_matmul(x, w, False)

    if any(d.platform == "gpu" and d.compute_capability not in ("9.0", "9.0a") for d in jax.devices()):
        pytest.skip("a GPU that is not Hopper is there, so that nothing is taken")
    assert takes() and takes("float16", rows=1)
    assert not takes("float32") and not takes(rows=0)
    assert not takes(width=200) and not takes(out=64)


@pytest.mark.aot
@pytest.mark.parametrize("cores", [None, 132])
def test_compiled_for_a_gpu(cores, monkeypatch):
    pytest.importorskip("jax_cuda12_plugin", reason="needs jax-cuda12-plugin and jax-cuda12-pjrt (extra `aot`)")
    pytest.importorskip("nvidia.cuda_runtime", reason="needs nvidia-cuda-runtime-cu12 and nvidia-cuda-nvcc-cu12")
    place = placement.topology("h100:1", [1])
    if cores is not None:  # the kernel of the sums asks a device that is there; one for H100 says this
        gpu = type("Gpu", (), {"core_count": cores, "compute_capability": "9.0"})()
        monkeypatch.setattr(jax, "devices", lambda *_: [gpu])

    def grad(x, w, sizes):
        def loss(x, w):
            return grouped_matmul(x, w, sizes).astype(np.float32).sum()

        return jax.value_and_grad(loss, (0, 1))(x, w)

    whole = jax.sharding.PartitionSpec()
    sharding = jax.sharding.NamedSharding(place.mesh, whole)
    shapes = ((4, 2048, 2048), "bfloat16"), ((16, 2048, 4096), "bfloat16"), ((4, 16), "int32")
    arrays = [jax.ShapeDtypeStruct(*s, sharding=sharding) for s in shapes]
    run = jax.shard_map(grad, mesh=place.mesh, in_specs=whole, out_specs=whole, check_vma=False)
    program = jax.jit(run).lower(*arrays).compile()
    calls = program.as_text().count('custom_call_target="mosaic_gpu')
    assert calls == (2 if cores is None else 3)  # the product, the gradient of the rows, and that of the matrices
    if cores is not None:
        assert program.memory_analysis().temp_size_in_bytes < 200e6
