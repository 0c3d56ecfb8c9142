"""`DataParallel`: PyTorch's single-process wrapper; calls the module unchanged, as global tensors do the work."""

from __future__ import annotations

from typing import Any

from sbpjax.nn.module import Module


class DataParallel(Module):
    """A module called as it is, with PyTorch's names: its state begins with ``module.``.

    One process drives all devices through global tensors here, so there is nothing to copy or scatter: make the module
    `broadcast` and its input ``split(0)``.

    Args:
        module: the module.
        device_ids: kept for its spelling.
        output_device: kept for its spelling.
        dim: kept for its spelling.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids, self.output_device = list(device_ids or []), output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
