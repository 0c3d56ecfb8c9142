"""`torch._foreach_*`: an op on every tensor of a list, as for averages of weights.

    _foreach_add([a, b], [c, d], alpha=2)      # [a + 2 * c, b + 2 * d]
    _foreach_mul_([a, b], 0.9)                 # in place

Any method of a tensor has a form that returns new tensors and one, with an underscore, that writes into the first list.
`_OPS` has those whose arguments differ from the method's. Optimizers first group their lists by device and dtype, as
`torch.utils._foreach_utils` does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core.tensor import Tensor

_OPS: dict[str, Callable] = {
    "add": lambda x, y, alpha=1: x + y if isinstance(alpha, int) and alpha == 1 else x + y * alpha,
    "addcdiv": lambda x, a, b, value=1: x.addcdiv(a, b, value=value),
    "addcmul": lambda x, a, b, value=1: x.addcmul(a, b, value=value),
    "copy": lambda x, y, non_blocking=False: y,
    "lerp": lambda x, end, weight: x.lerp(end, weight),
    "maximum": lambda x, y: x.clamp_min(y),
    "minimum": lambda x, y: x.clamp_max(y),
    "mul": lambda x, y: x * y,
    "norm": lambda x, ord=2, dtype=None: x.norm(ord, dtype=dtype),
    "zero": lambda x: x.new_zeros(x.shape),
}
_VALUE = {"scalars": "value", "scalar": "value", "exponents": "exponent"}  # PyTorch's names for lists of numbers


def _expand_per_tensor(values: Any, count: int) -> Sequence:
    """Return one value per tensor: a list as it is, a vector of numbers taken apart, a single value repeated."""
    if isinstance(values, (list, tuple)):
        return values
    if isinstance(values, Tensor) and values.ndim == 1 and count > 1:
        return values.unbind()
    return [values] * count


def _group_tensors_by_device_and_dtype(tensorlistlist: Sequence[Sequence], with_indices: bool = False) -> dict:
    """Return by device and dtype of the first list's tensors the entries of all lists there, and their places."""
    groups: dict[tuple, tuple[list[list], list[int]]] = {}
    for place, x in enumerate(tensorlistlist[0]):
        lists, places = groups.setdefault((x.device, x.dtype), ([[] for _ in tensorlistlist], []))
        places.append(place)
        for group, whole in zip(lists, tensorlistlist, strict=True):
            if whole:
                group.append(whole[place])
    return {key: (lists, places if with_indices else []) for key, (lists, places) in groups.items()}


def _has_foreach_support(tensors: Sequence[Tensor], device: Any) -> bool:
    """Return whether all are tensors, on any device."""
    return all(isinstance(x, Tensor) for x in tensors)


def _device_has_foreach_support(device: Any) -> bool:
    """Return True."""
    return True


@functools.cache
def find_foreach(full: str) -> Callable | None:
    """Return the function of a name such as ``"_foreach_addcmul_"``, None if tensors have no such method."""
    name = full.removeprefix("_foreach_").removesuffix("_")
    op = _OPS.get(name) or getattr(Tensor, name, None)
    return None if op is None or not full.startswith("_foreach_") else _make_foreach(name, op, full.endswith("_"))


def _make_foreach(name: str, op: Callable, inplace: bool) -> Callable:
    def foreach(self: Sequence[Tensor], *others: Any, **options: Any) -> list[Tensor] | None:
        rows = zip(self, *[_expand_per_tensor(v, len(self)) for v in others], strict=True) if others else zip(self)
        # one value per tensor may come by its name, too
        named = {_VALUE.get(key, key): _expand_per_tensor(v, len(self)) for key, v in options.items() if v is not None}
        made = [op(*row, **{key: v[i] for key, v in named.items()}) for i, row in enumerate(rows)]
        if not inplace:
            return made
        for x, value in zip(self, made, strict=True):
            x.copy_(value)
        return None

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}{'_' * inplace}"
    foreach.__doc__ = f"{'Write' if inplace else 'Return'} `{name}` of every tensor of a list."
    return foreach
