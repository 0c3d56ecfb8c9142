"""`torch.utils.flop_counter`: counts by PyTorch's dispatcher, which XLA's cost analysis replaces."""

from __future__ import annotations

from .absent import absences

__getattr__ = absences(
    "torch.utils.flop_counter",
    "it counts what PyTorch's dispatcher runs",
    "jax.jit(fn).lower(*args).cost_analysis()['flops']",
)
