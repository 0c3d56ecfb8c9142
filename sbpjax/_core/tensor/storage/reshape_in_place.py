"""In-place shape changes: ``x.squeeze_()``, ``x.t_()`` etc."""

from __future__ import annotations

import functools

from sbpjax.errors import InplaceError

from ..handle.mode import mode
from ..handle.tensor import Tensor
from . import views
from .inplace import check_writable
from .payload import is_shared
from .storage import base_of, reshape_to, retarget_view


def _reshape_in_place(function):
    @functools.wraps(function)
    def method(self: Tensor, *args, **options) -> Tensor:
        check_writable(self, f"{function.__name__}_")
        if base_of(self) is not None and (not self.requires_grad or mode.grad):
            return retarget_view(self, function(self, *args, **options))
        if is_shared(self):
            raise InplaceError(
                f"{function.__name__}_",
                "a tensor that shares storage with another one",
                "only a view, or a tensor that is alone on its storage, changes its shape in place",
                f"x = x.{function.__name__}(...)",
            )
        out = function(self.detach() if not self.requires_grad else self.clone(), *args, **options)
        return reshape_to(self, out)

    method.__name__ = f"{function.__name__}_"
    method.__doc__ = f"Write `{function.__name__}` into this tensor, which takes the new shape, and return it."
    return method


squeeze_, unsqueeze_, transpose_, t_ = map(
    _reshape_in_place, (views.squeeze, views.unsqueeze, views.transpose, views.t)
)
