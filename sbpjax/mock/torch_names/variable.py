"""`torch.autograd.Variable`: tensors before they had gradients of their own; every tensor is one."""

from __future__ import annotations

from typing import Any

from sbpjax.tensor import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """Calling it returns the tensor itself, or one that shares its memory if `requires_grad` is to be another."""

    def __new__(cls, data: Any = None, requires_grad: bool | None = None, volatile: bool | None = None):
        """Return a tensor.

        Args:
            data: a tensor.
            requires_grad: whether it is to have a gradient.
            volatile: PyTorch's old form of `no_grad`, without effect.
        """
        if data is None:
            return Tensor()
        if requires_grad is None or requires_grad == data.requires_grad:
            return data
        return data.detach().requires_grad_(requires_grad)
