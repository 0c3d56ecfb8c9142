"""Settings of backends and of OneFlow's boxing: kept, set for a block; TF32 alone has an effect."""

import jax
import sbpjax.backends.cudnn as cudnn
import sbpjax.boxing.nccl as nccl

import sbpjax as flow
from sbpjax._core.functions import settings


def test_settings_are_kept():
    assert flow.backends.cudnn is cudnn and cudnn.benchmark is False
    cudnn.benchmark = True
    try:
        assert flow.backends.cudnn.benchmark is True
    finally:
        cudnn.benchmark = False
    with cudnn.flags(enabled=False, deterministic=True):
        assert not cudnn.enabled and cudnn.deterministic
    assert cudnn.enabled and not cudnn.deterministic
    assert not flow.backends.mps.is_available() and flow.backends.mkldnn.is_available()
    assert cudnn.is_available() == flow.cuda.is_available()
    cudnn.set_reserved_mem_mbytes(100)


def test_boxing_settings_are_kept():
    nccl.set_fusion_threshold_mbytes(16)
    flow.boxing.nccl.enable_use_compute_stream(True)
    assert nccl.settings["fusion_threshold_mbytes"] == 16 and nccl.settings["use_compute_stream"] is True
    with flow.asyncs.thread(flow.asyncs.Thread()):
        assert flow.ones(1).item() == 1


def test_tf32_is_the_precision_of_float32_products():
    before = jax.config.jax_default_matmul_precision
    matmul = flow.backends.cuda.matmul
    try:
        assert flow.get_float32_matmul_precision() == "highest" and not matmul.allow_tf32  # on CPU
        matmul.allow_tf32 = True
        assert flow.get_float32_matmul_precision() == "high" == jax.config.jax_default_matmul_precision
        matmul.allow_tf32 = False
        assert flow.get_float32_matmul_precision() == "highest" == jax.config.jax_default_matmul_precision
    finally:
        jax.config.update("jax_default_matmul_precision", before)
        settings._settings["precision"] = None
