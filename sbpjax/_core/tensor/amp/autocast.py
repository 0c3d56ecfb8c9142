"""`autocast`: mixed-precision context and decorator, by per-op precision lists.

    with sbpjax.autocast("cpu", dtype=sbpjax.bfloat16):
        logits = model(x)                                # matrix products in bfloat16
        loss = F.cross_entropy(logits, y)                # in float32
    loss.backward()                                      # gradients in the dtype of the parameters

It follows PyTorch's context, for local and global tensors, in eager code and in traced programs, on every
device. The device type chooses the lists (`_core.tensor.amp.lists`) and the default dtype; it is no filter: with
``autocast("cuda")`` ops on CPU tensors are cast too, so a script gives the same dtypes wherever it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

from sbpjax._core.runtime.context_exit import ContextExit, restore_last
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import OpError, OpTypeError, OpValueError

from .casting import CASTABLE, Casting, use_casting
from .lists import CastPolicy, lists_of

# PyTorch's defaults: a script gives the same dtypes here.
_DEFAULTS = {
    "cpu": dtypes.bfloat16,
    "tpu": dtypes.bfloat16,
    "cuda": dtypes.float16,
    "gpu": dtypes.float16,
    "xpu": dtypes.float16,
    "mps": dtypes.float16,
}


class autocast:
    """Run ops by the autocast lists within the block, or within the decorated function.

    Args:
        device_type: ``"cpu"``, ``"cuda"``, ``"gpu"``, ``"tpu"``...; chooses the default of `dtype` and `lists`.
        dtype: ``bfloat16``, ``float16``, or ``"fp8"`` (or ``float8_e4m3fn``), which is bfloat16 with 8-bit products of
            linear layers, see `sbpjax.amp`; by default ``bfloat16`` for ``"cpu"`` and ``"tpu"``, else ``float16``.
        enabled: False switches autocasting off within the block.
        cache_enabled: keep the cast of a weight for its next use, until the outermost block ends.
        lists: the precision of each op; by default `amp.lists.CPU` for ``"cpu"``, else `amp.lists.ACCELERATOR`.

    Example:
        >>> with sbpjax.autocast("cpu", dtype=sbpjax.bfloat16):
        ...     sbpjax.ones(2, 2) @ sbpjax.ones(2, 2)
        tensor([[2., 2.], [2., 2.]], dtype=sbpjax.bfloat16)
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtypes.dtype | Literal["fp8"] | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
        *,
        lists: CastPolicy | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            rule = f"Expected `device_type` of type `str`, got: `{type(device_type)}`"
            seen = f"a {type(device_type).__name__}"
            raise OpValueError("autocast(device_type)", seen, rule, 'autocast("cpu")')
        device_type = device_type.partition(":")[0]
        _check_device(device_type)
        if dtype is None:
            dtype = get_autocast_dtype(device_type)
        dtype = dtypes.float8_e4m3fn if dtype == "fp8" else dtype
        if dtype not in CASTABLE:
            rule = "autocast goes to bfloat16, float16 or fp8"
            fix = f"autocast({device_type!r}, dtype=sbpjax.bfloat16)"
            raise OpTypeError(f"autocast(dtype={dtype!r})", repr(dtype), rule, fix)
        self.device_type = device_type
        self.fast_dtype = dtype
        self._enabled = bool(enabled)
        self._keep = True if cache_enabled is None else bool(cache_enabled)
        self._lists = lists_of(device_type) if lists is None else lists
        self._before: list[Casting | None] = []

    def __enter__(self) -> autocast:
        before = mode.autocast
        self._before.append(before)
        mode.autocast = self._casting(before) if self._enabled else None
        return self

    def _casting(self, before: Casting | None) -> Casting:
        return Casting(self.fast_dtype, self._lists, self.device_type, self._keep, before)

    __exit__ = ContextExit(lambda self: restore_last(mode, "autocast", self._before))

    def __call__(self, function: Callable) -> Callable:
        """Return the function running within the block."""

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapper


class cuda_autocast(autocast):
    """`sbpjax.autocast` with ``"cuda"`` as its device type.

    Args:
        enabled: whether it is on.
        dtype: of lower precision; float16 if not given.
        cache_enabled: see `sbpjax.autocast`.
    """

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = None) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether autocasting is on, of any device type or of one."""
    casting = mode.autocast
    return casting is not None and (device_type is None or casting.device_type == device_type)


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """Return the dtype of autocasting, or its default."""
    casting = mode.autocast
    _check_device(device_type)
    return casting.requested if is_autocast_enabled(device_type) else _DEFAULTS[device_type]


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` supports a device type."""
    return device_type in _DEFAULTS


def is_autocast_cache_enabled() -> bool:
    """Return whether casts of weights are kept until the outermost block ends."""
    return mode.autocast is None or mode.autocast.keep


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None) -> Callable:
    """Set how ``forward`` of an `autograd.Function` runs under autocasting.

    Args:
        fwd: the static ``forward(ctx, *args)``; without it a decorator is returned.
        device_type: as in `autocast`.
        cast_inputs: under autocasting, cast floating inputs to this dtype and switch autocasting off inside; None runs
            ``forward`` as the caller's ops run.
    """
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        casting = mode.autocast
        ctx._autocast = casting if cast_inputs is None else None
        if casting is None or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        args, kwargs = _cast_all((args, kwargs), casting, cast_inputs)
        with use_casting(None):
            return fwd(ctx, *args, **kwargs)

    return wrapper


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Run ``backward`` of an `autograd.Function` with the autocasting of its ``forward``, see `custom_fwd`.

    Args:
        bwd: the static ``backward(ctx, *grads)``; without it a decorator is returned.
        device_type: as in `autocast`.
    """
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        casting = ctx._autocast
        # With nothing kept: the forward's casts may be tracers of a trace that is over.
        with use_casting(None if casting is None else casting.fresh_copy()):
            return bwd(ctx, *grads)

    return wrapper


def _cast_all(value: Any, casting: Casting, dtype: dtypes.dtype) -> Any:
    if isinstance(value, Tensor):
        return casting.cast(value, dtype)
    if isinstance(value, dict):
        return {k: _cast_all(v, casting, dtype) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_cast_all(v, casting, dtype) for v in value)
    return value


def _check_device(device_type: str) -> None:
    if device_type not in _DEFAULTS:
        rule = f"autocast knows the device types {', '.join(_DEFAULTS)}"
        raise OpError(f"autocast({device_type!r})", repr(device_type), rule, 'autocast("cpu")')
