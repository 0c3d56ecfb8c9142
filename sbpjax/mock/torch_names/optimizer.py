"""`torch.optim.optimizer`: names that optimizers of other packages import, to write steps like PyTorch's own."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from sbpjax import optim as _optim
from sbpjax.optim.optimizer import Optimizer as Optimizer
from sbpjax.optim.optimizer import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from sbpjax.optim.optimizer import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from sbpjax.tensor import Tensor
from sbpjax.tensor import dtype as _dtypes
from sbpjax.tensor.tape.grad_mode import set_grad_enabled

_T = TypeVar("_T")
ParamsT: TypeAlias = Any
StateDict: TypeAlias = dict[str, Any]
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
DeviceDict: TypeAlias = dict[Any, Tensor]
_foreach_doc = _fused_doc = _maximize_doc = _capturable_doc = _differentiable_doc = _params_doc = ""


class _RequiredParameter:
    """Stands for an option that a group of parameters must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _use_grad_for_differentiable(func: Callable[..., _T]) -> Callable[..., _T]:
    """Return a step that records gradients only if the optimizer's default option ``differentiable`` says so."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> _T:
        with set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """Return a tensor of one element as a number, anything else as it is."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """Return a list of numbers as it is."""
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """Return the square root of a tensor or a number."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable:
    """Return a decorator that returns the function itself."""
    return lambda function: function


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Return that neither is the default: a loop over tensors is what `_foreach_*` is made of here."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the kinds of device on which a step can be recorded."""
    return ["cuda", "cpu", "tpu"]


def _get_scalar_dtype(is_fused: Any = None) -> Any:
    """Return the dtype of step counts."""
    return _dtypes.float64 if _dtypes.get_default_dtype() == _dtypes.float64 and not is_fused else _dtypes.float32


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put the real views of complex tensors in their places, in the lists."""
    from sbpjax.functions.complex_numbers import view_as_real

    for i, p in enumerate(params):
        if p.is_complex():
            for values in (params, *state_and_grads):
                values[i] = view_as_real(values[i])


def _to_scalar(x: Any) -> Any:
    """Return a tensor of one element as a 0-d one."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _group_tensors_by_device_and_dtype(tensorlists: list[list], with_indices: bool = False) -> dict:
    """Return lists of tensors by device and dtype of the first list's.

    Args:
        tensorlists: lists of the same length.
        with_indices: give places, too.

    Returns:
        Per ``(device, dtype)`` the lists, and the places.
    """
    found: dict[Any, tuple[list[list], list[int]]] = defaultdict(lambda: ([[] for _ in tensorlists], []))
    for i, row in enumerate(zip(*tensorlists, strict=True)):
        lists, places = found[row[0].device, row[0].dtype]
        for values, value in zip(lists, row, strict=True):
            values.append(value)
        if with_indices:
            places.append(i)
    return dict(found)


def __getattr__(name: str) -> Any:
    return getattr(_optim, name)
