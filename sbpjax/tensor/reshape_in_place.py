"""``x.squeeze_()``, ``x.t_()`` and the like: a tensor that shows its elements in another shape from then on."""

from __future__ import annotations

import functools

from sbpjax.errors import InplaceError, message

from . import views
from .inplace import check_writable
from .mode import mode
from .storage import base_of, steps_of
from .tensor import Tensor


def _reshape_in_place(function):
    @functools.wraps(function)
    def method(self: Tensor, *args, **options) -> Tensor:
        check_writable(self, f"{function.__name__}_")
        if base_of(self) is not None and (self._edge is None or mode.grad):
            return _follow(self, function(self, *args, **options))
        if self._cell is not None:
            raise InplaceError(
                message(
                    f"{function.__name__}_",
                    "a tensor that shares storage with another one",
                    "only a view, or a tensor that is alone on its storage, changes its shape in place",
                    f"x = x.{function.__name__}(...)",
                )
            )
        out = function(self.detach() if self._edge is None else self.clone(), *args, **options)
        self._hold(out._array, out._layout)
        self._cell = None
        if out._edge is not None:
            self._edge, self._idx = out._edge, out._idx
        self._ver += 1
        return self

    method.__name__ = f"{function.__name__}_"
    method.__doc__ = f"Write `{function.__name__}` into this tensor, which takes the new shape, and return it."
    return method


def _follow(self: Tensor, view: Tensor) -> Tensor:
    """Make a view show what a view of it shows, and return it."""
    if view is not self:
        self._own_meta().steps = steps_of(view)
        self._hold(view._array, view._layout)
        self._edge, self._idx, self._seen, self._ver = view._edge, view._idx, view._seen, view._ver
    return self


squeeze_, unsqueeze_, transpose_, t_ = map(
    _reshape_in_place, (views.squeeze, views.unsqueeze, views.transpose, views.t)
)
