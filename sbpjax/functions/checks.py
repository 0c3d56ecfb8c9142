"""What a row's `check` looks at before the op runs; the parameters are those of the call form that it asks for."""

from __future__ import annotations

from sbpjax.errors import OpTypeError, message
from sbpjax.tensor.bounds import check_dim, check_size


def _call(asked: str, *rest) -> str:
    """Return a call as users write it: of a function ``gather(x, 0, index)``, of a method ``x.gather_(0, index)``."""
    return f"{asked}({', '.join(map(str, rest if asked.startswith('x.') else ('x', *rest)))})"


def index_in_dim(asked: str, input, dim, index) -> None:
    """Raise unless every number of an index names a place in a dim, counted from the front."""
    check_dim(_call(asked, dim, "index"), index, input, int(dim))


def index_of_elements(asked: str, input, index) -> None:
    """Raise unless every number of an index names an element, from either end."""
    check_size(_call(asked, "index"), index, input.shape.numel(), 0, negative=True)


def index_in_batch(asked: str, input, indices) -> None:
    """Raise unless every number names a place in the dim behind the batch."""
    check_size(_call(asked, "indices"), indices, input.shape[indices.ndim - 1], indices.ndim - 1)


def bounds_given(asked: str, min, max) -> None:
    """Raise unless one bound is given at least."""
    if min is None and max is None:
        rule = "At least one of 'min' or 'max' must not be None"
        raise OpTypeError(message(f"{asked}(x)", "neither min nor max", rule, "x.clamp(min=0)"))


def some_dims(asked: str, dims) -> None:
    """Raise unless a dim is named."""
    if not dims:
        raise OpTypeError(message(f"{asked}(x)", "no dims", "dims is a required argument", f"{asked}(x, (0,))"))
