"""Parametrisation of module tensors: a tensor computed from others whenever it is read.

    parametrize.register_parametrization(layer, "weight", Symmetric())
    layer.weight                             # Symmetric()(layer.parametrizations.weight.original)

The module gets a subclass of its own class in which the tensor is a property, and a child `parametrizations` that
holds, by tensor, a list of the functions and their `original` parameters (``original0``, ``original1``, … if the
first function's `right_inverse` gives several).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.nn.containers import ModuleDict, ModuleList
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import Parameter

_cache: list[dict[tuple[int, str], Tensor]] = []


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Within the block, compute each parametrised tensor only once."""
    _cache.append({} if not _cache else _cache[-1])
    try:
        yield
    finally:
        _cache.pop()


class ParametrizationList(ModuleList):
    """Functions of one tensor, applied in order, and the tensors that the first is applied to.

    Args:
        modules: the functions.
        original: the tensor before.
        unsafe: do not check the results of the functions.
    """

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False):
        super().__init__(modules)
        self.unsafe = unsafe
        values: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        values = module.right_inverse(values)
        self.is_tensor = isinstance(values, Tensor)
        self.ntensors = 1 if self.is_tensor else len(values)
        if self.is_tensor:
            self._hold("original", original, values)
        else:
            for i, value in enumerate(values):
                self._hold(f"original{i}", original, value)

    def _hold(self, name: str, original: Tensor, value: Tensor) -> None:
        if isinstance(original, Parameter):
            if value is original:
                self.register_parameter(name, original)
            else:
                self.register_parameter(name, Parameter(value.detach(), original.requires_grad))
        else:
            self.register_buffer(name, value)

    def _originals(self) -> list[Tensor]:
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def right_inverse(self, value: Tensor) -> None:
        """Write the originals that give `value`."""
        with no_grad():
            values: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    rule = f"parametrization {type(module).__name__} does not implement right_inverse."
                    fail(
                        "shape", "assigning to a parametrised tensor", "no right_inverse", rule, "define right_inverse"
                    )
                values = module.right_inverse(values)
            for target, new in zip(self._originals(), [values] if self.is_tensor else values, strict=True):
                target.copy_(new)

    def forward(self) -> Tensor:
        """Return the computed tensor."""
        first, *rest = list(self)
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value


def _make_property(name: str) -> property:
    def read(module: Any) -> Tensor:
        functions = module._modules["parametrizations"][name]
        if not _cache:
            return functions()
        key = (id(module), name)
        if key not in _cache[-1]:
            _cache[-1][key] = functions()
        return _cache[-1][key]

    def write(module: Any, value: Tensor) -> None:
        module._modules["parametrizations"][name].right_inverse(value)

    return property(read, write)


def _set_parametrized_class(module: Any, names: tuple[str, ...]) -> None:
    """Give a module the subclass in which the named tensors are computed; its own class if there are none."""
    plain = getattr(type(module), "_unparametrized", type(module))
    if not names:
        module.__class__ = plain
        return
    members: dict[str, Any] = {name: _make_property(name) for name in names}

    def __deepcopy__(self: Any, memo: dict) -> Any:
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        _set_parametrized_class(made, names)
        return made

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if name in names:
            members[name].fset(self, value)
        else:
            plain.__setattr__(self, name, value)

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        rule = "Serialization of parametrized modules is only supported through state_dict()"
        fail("shape", "pickling a parametrised module", plain.__name__, rule, "pickle module.state_dict()")

    members |= {"__deepcopy__": __deepcopy__, "__setattr__": __setattr__, "__reduce_ex__": __reduce_ex__}
    members |= {"_unparametrized": plain, "__module__": plain.__module__, "__doc__": plain.__doc__}
    module.__class__ = type(f"Parametrized{plain.__name__}", (plain,), members)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a parameter or buffer a function of its former value; return the module.

    Args:
        module: the module; it is changed.
        tensor_name: the parameter or buffer.
        parametrization: a module from the original tensor to the new one; its `right_inverse`, if any, makes the
            original of the present value. A second one is applied to the result of the first.
        unsafe: allow another shape or dtype.

    Raises:
        OpValueError: there is no such tensor, or its shape would change.
    """
    operation = f"register_parametrization({type(module).__name__}, {tensor_name!r})"
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        functions: Any = module._modules["parametrizations"][tensor_name]  # type: ignore[index]
        with no_grad():
            before = functions()
            _check(operation, before, parametrization(before), unsafe)
            value = parametrization.right_inverse(before) if hasattr(parametrization, "right_inverse") else before
            functions.append(parametrization)
            if value is not before:
                held = list(functions)[:-1]
                for inner in reversed(held):
                    value = inner.right_inverse(value)
                for target, new in zip(functions._originals(), [value] if functions.is_tensor else value):
                    target.copy_(new)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        owner = type(module).__name__
        rule = (
            f"Module '{owner}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
        fail(
            "value",
            operation,
            f"parameters {list(module._parameters)}",
            rule,
            "register_parametrization(layer, 'weight', f)",
        )
    original: Any = getattr(module, tensor_name)
    functions = ParametrizationList([parametrization], original, unsafe)
    with no_grad():
        _check(operation, original, functions(), unsafe)
    delattr(module, tensor_name)
    if "parametrizations" not in module._modules:
        module.add_module("parametrizations", ModuleDict())
    module._modules["parametrizations"][tensor_name] = functions  # type: ignore[index]
    _set_parametrized_class(module, tuple(module._modules["parametrizations"].keys()))  # type: ignore[union-attr]
    return module


def _check(operation: str, before: Tensor, after: Tensor, unsafe: bool) -> None:
    if not unsafe and (tuple(before.shape) != tuple(after.shape) or before.dtype != after.dtype):
        seen = f"{tuple(before.shape)} {before.dtype} became {tuple(after.shape)} {after.dtype}"
        rule = "Registering a parametrization may not change the shape or dtype of the tensor"
        fail("value", operation, seen, rule, "unsafe=True")


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module, or one tensor of it, is parametrised."""
    held = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrised tensor an ordinary one again; return the module.

    Args:
        module: the module; it is changed.
        tensor_name: the tensor.
        leave_parametrized: keep the computed value; otherwise the original one.

    Raises:
        OpValueError: it is not parametrised.
    """
    operation = f"remove_parametrizations({type(module).__name__}, {tensor_name!r})"
    if not is_parametrized(module, tensor_name):
        rule = f"Module {type(module).__name__} does not have a parametrization on {tensor_name}"
        fail("value", operation, "no parametrisation", rule, "register_parametrization(...) first")
    held: Any = module._modules["parametrizations"]
    functions = held[tensor_name]
    if not leave_parametrized and not functions.is_tensor:
        rule = "leave_parametrized=False is not possible with several original tensors"
        fail("value", operation, f"{functions.ntensors} originals", rule, "leave_parametrized=True")
    trained = "original" in functions._parameters or "original0" in functions._parameters
    with no_grad():
        value = functions().detach().clone() if leave_parametrized else functions.original
    if functions.is_tensor and trained:
        kept = functions.original  # the same object, so that an optimizer still has it
        if leave_parametrized:
            kept.data = value
        value = kept
    del held[tensor_name]
    _set_parametrized_class(module, tuple(held.keys()))
    if not len(held):
        delattr(module, "parametrizations")
    if trained:
        module.register_parameter(tensor_name, value if isinstance(value, Parameter) else Parameter(value))
    else:
        module.register_buffer(tensor_name, value)
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had before it was parametrised."""
    return getattr(type(module), "_unparametrized", type(module))


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give another module copies of a module's parametrisations and of their originals; return it."""
    names = [tensor_name] if tensor_name else list(from_module._modules["parametrizations"].keys())  # type: ignore
    for name in names:
        source: Any = from_module._modules["parametrizations"][name]  # type: ignore[index]
        for function in source:
            register_parametrization(to_module, name, copy.deepcopy(function), unsafe=source.unsafe)
        with no_grad():
            made: Any = to_module._modules["parametrizations"][name]  # type: ignore[index]
            for target, value in zip(made._originals(), source._originals()):
                target.copy_(value)
    return to_module
