"""`torch.library` and `torch.ops`: operators that libraries register, as Python functions.

    @torch.library.custom_op("shop::price", mutates_args=())
    def price(x: Tensor, rate: float) -> Tensor: ...

    torch.ops.shop.price(x, 2.0)         # price(x, 2.0)
    torch.ops.aten.add.Tensor(x, y)      # torch.add(x, y): names of PyTorch itself are public functions
    torch.ops.load_library("a.so")       # OSError: a compiled library needs PyTorch's runtime

An operator is a name with implementations per dispatch key. A call runs the implementation for tensors; those for
shapes (`register_fake`, ``"Meta"``) and casts are accepted and not needed, as JAX traces the function itself. The file
of a library whose operators are in `_OWN` counts as loaded, and these are sbpjax's.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core.compat.missing import MissingPlaceholder, is_mention, is_unguarded_import
from sbpjax._core.functions import nn as _nn
from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.tape.function import Function
from sbpjax.errors import LibraryLoadError, NotInJaxError, OpTypeError, UnknownNameError

# libraries of compiled operators that sbpjax computes itself
_AUDIO = LazyModule("sbpjax._core.compat.torch_names.audio_ops")
_OWN = {
    "torchvision": LazyModule("sbpjax._core.compat.torch_names.vision_ops"),
    "torchaudio": _AUDIO,
    "_torchaudio": _AUDIO,
}
_WITHOUT_VALUES = ("Meta", "Autocast", "Functionalize", "ADInplaceOrView", "FuncTorch", "Python", "Fake")
_FIX = "torch.library.custom_op(name) of a Python function of tensors, or sbpjax.wrap_jax(fn)"


class Operator:
    """One operator: its implementations by dispatch key, and its backward.

    Args:
        name: its name with the namespace, ``"shop::price"``.
    """

    def __init__(self, name: str) -> None:
        self._name = self._qualname = self.__name__ = name
        self.kernels: dict[str, Callable] = {}
        self._autograd: tuple[Callable | None, Callable | None] | None = None

    def __getattr__(self, name: str) -> Any:
        """Return an overload, which is the operator itself: its function takes all of them."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the operator of tensors, with its own backward if one was registered."""
        function = self._implementation()
        if self._autograd is None:
            return function(*args, **kwargs)
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        return _Recorded.apply(self, bound.kwargs, *bound.args)

    def _implementation(self) -> Callable:
        found = next((self.kernels[key] for key in ("CompositeImplicitAutograd", "CPU") if key in self.kernels), None)
        others = [f for key, f in self.kernels.items() if not key.startswith(_WITHOUT_VALUES)]
        if found is None and not others:
            seen = f"implementations for {', '.join(self.kernels) or 'nothing'}"
            rule = "an operator has a Python function that computes its values"
            raise NotInJaxError(f"torch.ops.{self._name.replace('::', '.')}(...)", seen, rule, _FIX)
        return found or others[0]

    # ------------------------------------------------------------------------ what `custom_op` returns has these, too

    def register_kernel(self, device_types: Any, func: Callable | None = None, /) -> Any:
        """Register an implementation for devices; the first registered one computes the operator everywhere."""
        return _take(lambda f: self.kernels.setdefault(str(device_types), f), func)

    def register_fake(self, func: Callable | None = None, /) -> Any:
        """Accept a function of shapes, which follow from the implementation."""
        return _take(lambda f: self.kernels.setdefault("Meta", f), func)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Set the backward: ``setup_context(ctx, inputs, output)``, ``backward(ctx, *grads)``."""
        self._autograd = backward, setup_context

    def register_vmap(self, func: Callable | None = None, /) -> Any:
        """Accept a rule of batches, which follow from the implementation."""
        return _take(lambda f: None, func)

    register_torch_dispatch = register_autocast = register_vmap

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._name.replace('::', '.')}')>"


class _Recorded(Function):
    """An operator with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, op: Operator, options: dict, *args: Any) -> Any:
        output = op._implementation()(*args, **options)
        ctx.op = op
        setup = op._autograd[1]  # type: ignore[index]
        if setup is not None:
            setup(ctx, args, output, **({"keyword_only_inputs": options} if options else {}))
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        found = ctx.op._autograd[0](ctx, *grads)
        return None, None, *(found if isinstance(found, tuple) else (found,))


def _take(use: Callable, function: Callable | None) -> Any:
    """Hand a function on and return it; without one return the decorator that does so."""

    def decorate(given: Callable) -> Callable:
        use(given)
        return given

    return decorate if function is None else decorate(function)


# ------------------------------------------------------------------------------------------------------- torch.ops


class _Namespace:
    """The operators of a library."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        """Return an operator: a registered one, one of `_OWN`, or of PyTorch's own that is a public function."""
        found = None if name.startswith("__") else _find(f"{self.name}::{name}")
        if found is None and is_mention():
            return MissingPlaceholder(f"torch.ops.{self.name}.{name}", "torch")
        if found is None:
            raise UnknownNameError(
                f"torch.ops.{self.name}.{name}",
                f"no operator {self.name}::{name} is registered",
                "operators of a library are Python functions here; compiled ones need PyTorch's runtime",
                _FIX,
                name=name,
                obj=self,
            )
        self.__dict__[name] = found
        return found


class _Ops:
    """The operators of all libraries, as `torch.ops.library.operator`."""

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        space = self.__dict__[name] = _Namespace(name)
        return space

    def load_library(self, path: Any) -> None:
        """Load a shared library of operators, if they are sbpjax's own.

        Nothing is loaded where a library that is being imported has no other way, as torchaudio: those of its operators
        that are not in `_OWN` raise an error when they are called.

        Raises:
            LibraryLoadError: any other library, an OSError.
        """
        if os.path.basename(os.path.dirname(os.fspath(path))) in _OWN and os.path.basename(path).startswith("_C"):
            return
        if is_unguarded_import():
            return
        rule = "a library of compiled operators needs PyTorch's own runtime"
        raise LibraryLoadError(f"torch.ops.load_library({os.fspath(path)!r})", "a shared library", rule, _FIX)


ops = _Ops()
_OPERATORS: dict[str, Operator] = {}


def _find(name: str) -> Operator | None:
    space, _, last = name.partition("::")
    if name in _OPERATORS:
        return _OPERATORS[name]
    if space in _OWN:
        return _declare(name)
    if space not in ("aten", "prims"):
        return None
    function = _public_function(last)  # another name of PyTorch's can be mentioned, and raises when it is called
    return _declare(name) if function is None else _declare(name, CPU=function)


def _declare(name: str, **kernels: Callable) -> Operator:
    name = name if "::" in name else f"library::{name}"
    name = name.partition("(")[0].partition(".")[0].strip()
    op = _OPERATORS.setdefault(name, Operator(name))
    space, _, last = name.partition("::")
    own = getattr(_OWN[space], last, None) if space in _OWN else None
    if own is not None:
        op.kernels["CompositeImplicitAutograd"] = own
        op.register_autograd = lambda *args, **options: None  # type: ignore[method-assign]  # JAX differentiates it
    op.kernels.update(kernels)
    return op


def _public_function(name: str) -> Callable | None:
    if name.startswith("_"):
        name = name.lstrip("_") if name.lstrip("_") in ("softmax", "log_softmax", "to_copy") else name
    for place in (sys.modules["sbpjax"], _nn, Tensor):
        found = getattr(place, name, None)
        if callable(found):
            return found
    return None


# --------------------------------------------------------------------------------------------------- torch.library


class Library:
    """A library's operators, or implementations of another one's.

    Args:
        ns: the namespace.
        kind: ``"DEF"``, ``"FRAGMENT"`` or ``"IMPL"``.
        dispatch_key: the key of implementations without one of their own.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Register a name by its schema ``"price(Tensor x, float rate) -> Tensor"`` and return the name."""
        return _declare(f"{self.ns}::{schema}")._name.partition("::")[2]

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Register an implementation of an operator."""
        op = op_name if isinstance(op_name, Operator) else _declare(_qualify(self.ns, op_name))
        op.kernels.setdefault(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd", fn)

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Accept a function for all operators of a key: no dispatcher would call it."""

    def _register_fake(self, op_name: Any, fn: Callable, *args: Any, **options: Any) -> None:
        self.impl(op_name, fn, "Meta")

    def _destroy(self) -> None:
        """Keep the operators."""


def _qualify(space: str, name: str) -> str:
    return name if "::" in name else f"{space}::{name}"


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Sequence[str] = (),
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Return a function as an operator, which is also ``torch.ops.namespace.name``.

    Args:
        name: ``"namespace::name"``.
        fn: a function of tensors; without one the result is a decorator.
        mutates_args: accepted: writes in place are seen by themselves.
        device_types: accepted: the function computes on all devices.
        schema: accepted.
        tags: accepted.

    Raises:
        OpTypeError: `name` is a function: the name was left out.
    """
    if not isinstance(name, str):
        raise OpTypeError("torch.library.custom_op(name)", repr(name), "the name is a text", '"mine::op"')

    def make(function: Callable) -> Operator:
        op = _declare(name)
        op.kernels["CPU"] = function
        op.__doc__ = function.__doc__
        return op

    return make if fn is None else make(fn)


triton_op = custom_op


def wrap_triton(kernel: Any, /) -> Any:
    """Return the kernel itself; Triton compiles it where there is a GPU and PyTorch."""
    return kernel


def _of(op: Any) -> Operator:
    return op if isinstance(op, Operator) else _declare(op)


def infer_schema(prototype_function: Callable, /, *, mutates_args: Any = (), op_name: str | None = None) -> str:
    """Return a text that `define` takes for a function: its name and its signature."""
    return f"{op_name or ''}{inspect.signature(prototype_function)}"


def define(qualname: str, schema: Any = None, *, lib: Any = None, tags: Any = ()) -> Any:
    """Register a name, ``define("shop::price", "(Tensor x) -> Tensor")``; without a schema return a decorator."""
    _declare(qualname)
    return None if isinstance(schema, str) else impl(qualname, "default")


def impl(qualname: Any, types: Any, func: Callable | None = None, *, lib: Any = None) -> Any:
    """Register an implementation for kinds of devices."""
    return _take(lambda f: _of(qualname).kernels.setdefault(str(types), f), func)


def register_fake(
    op: Any, func: Callable | None = None, /, *, lib: Any = None, _stacklevel: int = 1, **options: Any
) -> Any:
    """Accept a function of shapes for an operator."""
    return _of(op).register_fake(func)


impl_abstract = register_fake


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Register an implementation for kinds of devices."""
    return _of(op).register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """Set the backward of an operator."""
    _of(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Accept a rule of batches for an operator."""
    return _take(lambda f: None, func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Callable | None = None, /, *, lib: Any = None):
    """Accept a function for a class of tensors."""
    return _take(lambda f: None, func)


register_autocast = register_torch_dispatch
