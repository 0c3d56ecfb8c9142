"""Backend settings as modules, so that ``import sbpjax.backends.cudnn as cudnn; cudnn.benchmark = True`` works.

XLA chooses algorithms when it compiles. ``cuda.matmul.allow_tf32`` is `set_float32_matmul_precision` by another name:
on GPUs XLA multiplies float32 in TF32 unless a higher precision is set, unlike PyTorch. Known facts are answered
honestly: cuDNN is there where a GPU is.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from sbpjax._core.compat.cuda import devices as _gpus
from sbpjax._core.functions import settings

_NAME = "sbpjax.backends"


def _gpu() -> bool:
    return _gpus.is_available()


def _never() -> bool:
    return False


def _always() -> bool:
    return True


def _module(name: str, doc: str, is_available: Callable[[], bool], **names: Any) -> types.ModuleType:
    module = types.ModuleType(f"{_NAME}.{name}", doc)
    vars(module).update(names, is_available=is_available, is_built=is_available, flags=_flags(module))
    sys.modules[module.__name__] = module
    return module


def _flags(module: types.ModuleType) -> Callable[..., Any]:
    @contextlib.contextmanager
    def flags(**settings: Any) -> Iterator[None]:
        """Set some settings within a block."""
        before = {name: getattr(module, name) for name in settings if hasattr(module, name)}
        vars(module).update(settings)
        try:
            yield
        finally:
            vars(module).update(before)

    return flags


class _Matmul:
    """`torch.backends.cuda.matmul`."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 products may be computed with fewer bits."""
        return settings.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        settings.set_float32_matmul_precision("high" if allowed else "highest")


def _accept_setting(value: Any) -> None:
    """Accept a setting that has no meaning for XLA."""


cudnn = _module(
    "cudnn",
    "Settings of cuDNN, without effect.",
    _gpu,
    enabled=True,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    version=lambda: None,
    enable_conv_heuristic_search_algo=_accept_setting,
    enable_fused_normalization_add_relu=_accept_setting,
    set_reserved_mem_mbytes=_accept_setting,
)
cuda = _module(
    "cuda",
    "Settings of CUDA's libraries, without effect.",
    _gpu,
    matmul=_Matmul(),
    flash_sdp_enabled=_always,
    mem_efficient_sdp_enabled=_always,
    math_sdp_enabled=_always,
    enable_flash_sdp=_accept_setting,
    enable_mem_efficient_sdp=_accept_setting,
    enable_math_sdp=_accept_setting,
    sdp_kernel=lambda **_: contextlib.nullcontext(),
)
# torchvision resizes bytes by numbers in 16 bits where PyTorch does, which it asks of the instructions; ours does.
cpu = _module("cpu", "The CPU's instructions.", _always, get_cpu_capability=lambda: "AVX2")
mps = _module("mps", "Apple's GPUs: JAX has none under this name.", _never)
mkldnn = _module("mkldnn", "oneDNN, without effect.", _always, enabled=True)
mkl = _module("mkl", "MKL: XLA does not use it.", _never)
openmp = _module("openmp", "OpenMP: XLA does not use it.", _never)
opt_einsum = _module("opt_einsum", "The order of an einsum's products.", _always, enabled=True, strategy="auto")
