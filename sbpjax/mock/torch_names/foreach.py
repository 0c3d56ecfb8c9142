"""`torch._foreach_*`: an op on every tensor of a list.

    _foreach_add([a, b], [c, d], alpha=2)      # [a + 2 * c, b + 2 * d]
    _foreach_mul_([a, b], 0.9)                 # in place

Made by one loop over `_ONE` and `_TWO`: each name has a form that returns new tensors and one, with an underscore,
that writes into the first list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sbpjax import functions
from sbpjax.tensor import Tensor

_ONE = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round "
    "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()


def _maximum(x: Tensor, y: Any) -> Tensor:
    return functions.maximum(x, y) if isinstance(y, Tensor) else x.clamp(min=y)


def _minimum(x: Tensor, y: Any) -> Tensor:
    return functions.minimum(x, y) if isinstance(y, Tensor) else x.clamp(max=y)


_TWO: dict[str, Callable] = {
    "add": lambda x, y, alpha=1: x + y if isinstance(alpha, int) and alpha == 1 else x + y * alpha,
    "sub": lambda x, y, alpha=1: x - y if isinstance(alpha, int) and alpha == 1 else x - y * alpha,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "maximum": _maximum,
    "clamp_min": _maximum,
    "minimum": _minimum,
    "clamp_max": _minimum,
    "lerp": lambda x, end, weight: functions.lerp(x, end, weight),
    "addcmul": lambda x, a, b, value=1: x + a * b * value,
    "addcdiv": lambda x, a, b, value=1: x + a / b * value,
}


def _each(values: Any, count: int) -> Sequence:
    """Return one value per tensor: a list as it is, a vector of numbers taken apart, a single value repeated."""
    if isinstance(values, (list, tuple)):
        return values
    if isinstance(values, Tensor) and values.ndim == 1 and count > 1:
        return values.unbind()
    return [values] * count


def _over(op: Callable) -> Callable:
    def foreach(self: Any, *others: Any, **options: Any) -> list[Tensor]:
        count = max(len(v) for v in (self, *others) if isinstance(v, (list, tuple)))
        columns = [_each(v, count) for v in (self, *others)]
        # one value per tensor may come by its name, too
        named = {key: _each(v, count) for key, v in options.items() if v is not None}
        rows = zip(*columns, strict=True)
        return [op(*row, **{key: v[i] for key, v in named.items()}) for i, row in enumerate(rows)]

    return foreach


def _into(foreach: Callable) -> Callable:
    def inplace(self: Sequence[Tensor], *others: Any, **options: Any) -> None:
        for x, value in zip(self, foreach(self, *others, **options), strict=True):
            x.copy_(value)

    return inplace


def _made() -> dict[str, Callable]:
    made: dict[str, Callable] = {}
    for name in (*_ONE, *_TWO):
        full = f"_foreach_{name}"
        op = _TWO.get(name) or getattr(functions, name)
        made[full] = _over(op)
        made[f"{full}_"] = _into(made[full])
        for key in (full, f"{full}_"):
            made[key].__name__ = made[key].__qualname__ = key
            made[key].__doc__ = f"{'Write' if key.endswith('_') else 'Return'} `{name}` of every tensor of a list."
    return made


def _foreach_zero_(self: Sequence[Tensor]) -> None:
    """Set every tensor of a list to zero."""
    for x in self:
        x.zero_()


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> None:
    """Write the tensors of one list into those of another."""
    for x, value in zip(self, src, strict=True):
        x.copy_(value)


def _foreach_norm(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> list[Tensor]:
    """Return the norm of every tensor of a list, as a vector of its elements."""
    from sbpjax.functions import linalg  # which few scripts need

    return [linalg.vector_norm(x, ord, dtype=dtype) for x in self]


def _foreach_max(self: Sequence[Tensor]) -> list[Tensor]:
    """Return the largest element of every tensor of a list."""
    return [x.max() for x in self]


TABLE = _made() | {f.__name__: f for f in (_foreach_zero_, _foreach_copy_, _foreach_norm, _foreach_max)}
