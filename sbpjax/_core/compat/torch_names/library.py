"""`torch.library`, `torch.ops`: ops of C++ extensions; a custom op in Python is the Python function."""

from __future__ import annotations

from typing import Any

from .absent import absent


def _passing(*args, **kwargs) -> Any:
    """Return a decorator that returns the function itself."""
    return lambda function: function


def custom_op(name, fn=None, /, **options) -> Any:
    """Return the function itself as an op, with `register_fake` and `register_autograd` accepted."""

    def decorator(function):
        function.register_fake = function.register_kernel = lambda *args, **kwargs: lambda f: f
        return function

    return decorator if fn is None else decorator(fn)


def register_autograd(op, backward, /, *, setup_context=None, lib=None) -> None:
    """Do nothing: the gradient of a Python function is that of the ops it calls."""


register_fake = impl_abstract = register_kernel = register_torch_dispatch = register_vmap = impl = define = _passing
triton_op = custom_op
Library = absent("torch.library.Library", "it registers C++ ops with PyTorch's dispatcher", "sbpjax.wrap_jax(fn)")
