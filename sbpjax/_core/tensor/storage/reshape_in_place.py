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
            if self.requires_grad:
                raise InplaceError(
                    f"{function.__name__}_",
                    "a tensor that requires gradients and shares storage with another one",
                    "of the tensors on the tape only a view, or one that is alone on its storage, changes its shape",
                    f"x = x.{function.__name__}(...)",
                )
            # Its views need a base of the former shape: the tensor becomes a view of one, too.
            former = self.detach()
            view = function(former, *args, **options)
            if view is not former:
                self._own_meta().base = former
            return retarget_view(self, view) if view is not former else self
        out = function(self.detach() if not self.requires_grad else self.clone(), *args, **options)
        return reshape_to(self, out)

    method.__name__ = f"{function.__name__}_"
    method.__doc__ = f"Write `{function.__name__}` into this tensor, which takes the new shape, and return it."
    return method


squeeze_, unsqueeze_, transpose_, t_ = map(
    _reshape_in_place, (views.squeeze, views.unsqueeze, views.transpose, views.t)
)
