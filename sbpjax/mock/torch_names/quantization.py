"""`torch.ao.quantization` and modules of quantised layers: kernels of integers that only PyTorch has."""

from __future__ import annotations

from .absent import absences

__getattr__ = absences(
    "torch.ao", "quantised layers are kernels of PyTorch's own", "sbpjax.nn.QatConv2d, sbpjax.nn.FakeQuantization"
)
