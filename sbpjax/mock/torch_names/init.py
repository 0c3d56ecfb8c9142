"""`torch.nn.init`: the helpers of the initialisers, which model libraries call by their private names."""

from __future__ import annotations

from typing import Any

from sbpjax.nn import init
from sbpjax.tensor import Tensor

_calculate_fan_in_and_fan_out = init.fans
_no_grad_uniform_ = init.uniform_
_no_grad_normal_ = init.normal_
_no_grad_trunc_normal_ = init.trunc_normal_
_no_grad_fill_ = init.constant_
_no_grad_zero_ = init.zeros_


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """Return one of the two numbers of `fans`.

    Args:
        tensor: the weight.
        mode: ``"fan_in"`` or ``"fan_out"``, in any case of letters.
    """
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of ['fan_in', 'fan_out']")
    return init.fans(tensor)[mode.lower() == "fan_out"]


def _make_deprecate(meth: Any) -> Any:
    """Return an initialiser under its old name, without the underscore."""
    return init._old(meth)
