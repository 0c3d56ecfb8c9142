"""`torch._foreach_*`: an op on every tensor of a list, as for averages of weights.

    _foreach_add([a, b], [c, d], alpha=2)      # [a + 2 * c, b + 2 * d]
    _foreach_mul_([a, b], 0.9)                 # in place

Each name of `_OPS` has a form that returns new tensors and one, with an underscore, that writes into the first list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core.tensor import Tensor

_OPS: dict[str, Callable] = {
    "add": lambda x, y, alpha=1: x + y if isinstance(alpha, int) and alpha == 1 else x + y * alpha,
    "copy": lambda x, y, non_blocking=False: y,
    "lerp": lambda x, end, weight: x.lerp(end, weight),
    "mul": lambda x, y: x * y,
}


def _expand_per_tensor(values: Any, count: int) -> Sequence:
    """Return one value per tensor: a list as it is, a vector of numbers taken apart, a single value repeated."""
    if isinstance(values, (list, tuple)):
        return values
    if isinstance(values, Tensor) and values.ndim == 1 and count > 1:
        return values.unbind()
    return [values] * count


def _make_foreach(name: str, op: Callable, inplace: bool) -> Callable:
    def foreach(self: Sequence[Tensor], *others: Any, **options: Any) -> list[Tensor] | None:
        rows = zip(self, *[_expand_per_tensor(v, len(self)) for v in others], strict=True)
        # one value per tensor may come by its name, too
        named = {key: _expand_per_tensor(v, len(self)) for key, v in options.items() if v is not None}
        made = [op(*row, **{key: v[i] for key, v in named.items()}) for i, row in enumerate(rows)]
        if not inplace:
            return made
        for x, value in zip(self, made, strict=True):
            x.copy_(value)
        return None

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}{'_' * inplace}"
    foreach.__doc__ = f"{'Write' if inplace else 'Return'} `{name}` of every tensor of a list."
    return foreach


TABLE = {
    f.__name__: f for name, op in _OPS.items() for f in (_make_foreach(name, op, False), _make_foreach(name, op, True))
}
