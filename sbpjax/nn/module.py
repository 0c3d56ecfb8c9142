"""`Module`: base class of layers and models, with PyTorch's semantics.

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Linear(64, 256)
            self.down = nn.Linear(256, 64)

        def forward(self, x):
            return self.down(nn.functional.gelu(self.up(x)))

Assigning a `Parameter`, a `Module` or (through `register_buffer`) a tensor to an attribute registers it by that
name. The code of a module is independent of its devices: `to_global` lays its tensors out, with other layouts for
single layers:

    mlp = MLP().to_global(placement, sbp.broadcast)      # every tensor
    mlp.up.to_global(placement, sbp.split(0))            # then this layer's otherwise
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import sbpjax.nn.hooks as _hooks
import sbpjax.nn.names as _names
from sbpjax._core import naming
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import is_shared, payload, put_from
from sbpjax._core.tensor.storage.version_counter import Table, changes
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax._core.tensor.tape.zeroing import zero_grads
from sbpjax.nn import state as _state
from sbpjax.nn.hook_methods import HookMethods
from sbpjax.nn.parameter import Buffer, Parameter

from .placing import PlacementMethods

if TYPE_CHECKING:  # a call has the signature of the subclass's `forward`
    from typing import ParamSpec, Protocol, TypeVar

    _P = ParamSpec("_P")
    _R = TypeVar("_R", covariant=True)

    class _HasForward(Protocol[_P, _R]):
        def forward(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...


_TABLES = ("_parameters", "_buffers", "_modules")
_HOOK_TABLES = """_forward_pre_hooks _forward_hooks _backward_pre_hooks _backward_hooks _state_dict_pre_hooks
 _state_dict_hooks _load_state_dict_pre_hooks _load_state_dict_post_hooks""".split()


class Module(PlacementMethods, HookMethods, _state.ExtraState):
    """Base class of layers and models; override `forward`.

    Args:
        args: taken and ignored.
        kwargs: taken and ignored.

    Example:
        >>> class Double(flow.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        ...
        >>> Double()(flow.tensor([1.0, 2.0]))
        tensor([2., 4.])
    """

    training: bool = True
    dump_patches = False
    call_super_init = False
    T_destination = dict[str, Any]
    _version = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = Table()
        fields["_buffers"] = Table()
        fields["_non_persistent_buffers_set"] = set()
        fields["_modules"] = Table()
        fields["_forward_pre_hooks"] = OrderedDict()
        fields["_forward_hooks"] = OrderedDict()
        fields["_backward_pre_hooks"] = OrderedDict()
        fields["_backward_hooks"] = OrderedDict()
        fields["_state_dict_pre_hooks"] = OrderedDict()
        fields["_state_dict_hooks"] = OrderedDict()
        fields["_load_state_dict_pre_hooks"] = OrderedDict()
        fields["_load_state_dict_post_hooks"] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)
        elif args or kwargs:
            raise _names.unexpected_arguments_error(self, args, kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled or copied state; tables that an older one lacks start empty."""
        fields = self.__dict__
        fields.update(state)
        for table in _TABLES:
            if fields.get(table).__class__ in (dict, OrderedDict):  # as they are pickled
                fields[table] = Table(fields[table])
        changes.note()
        for table in _HOOK_TABLES:
            fields.setdefault(table, OrderedDict())
        fields.setdefault("_non_persistent_buffers_set", set())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; every subclass overrides this."""
        raise _names.missing_forward_error(self)

    def __call__(self: _HasForward[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if mode.blocks is not None:
            return mode.blocks.call(self, args, kwargs)
        return self._call_impl(args, kwargs)  # type: ignore[attr-defined]

    def _call_impl(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run the hooks and `forward`."""
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _hooks.any_global()
        ):
            return _hooks.call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    # -- registration
    # --------------------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register `param` under `name`; None keeps the name without a tensor.

        Raises:
            AttributeError: the module was not initialised.
            KeyError: the name is empty, has a dot, or is taken.
            TypeError: `param` is no Parameter.
        """
        _names.check_name(self, name, self._table_of("_parameters", "parameters"), "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise _names.wrong_kind_error(self, name, param, "parameter")
        if param is not None and param.grad_fn is not None:
            raise _names.non_leaf_error(self, name)
        for hook in _hooks.GLOBAL_PARAMETER.values():
            result = hook(self, name, param)
            param = param if result is None else result
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is state but no parameter, such as running statistics.

        Args:
            name: the attribute.
            tensor: the buffer; None keeps the name without a tensor.
            persistent: whether it belongs to `state_dict`.
        """
        if getattr(tensor, "is_sparse", False) and not persistent:
            self.__dict__[name] = tensor  # a pair of tensors, and none of the module's state
            return
        _names.check_name(self, name, self._table_of("_buffers", "buffer"), "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise _names.wrong_kind_error(self, name, tensor, "buffer")
        for hook in _hooks.GLOBAL_BUFFER.values():
            result = hook(self, name, tensor)
            tensor = tensor if result is None else result
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a child module under `name`."""
        if not isinstance(module, Module) and module is not None:
            raise _names.not_module_error(f"{type(self).__name__}.add_module({name!r}, ...)", module)
        _names.check_name(self, name, self._table_of("_modules", "module"), "module")
        for hook in _hooks.GLOBAL_MODULE.values():
            result = hook(self, name, module)
            module = module if result is None else result
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a child module under `name`; the same as `add_module`."""
        self.add_module(name, module)

    def _table_of(self, table: str, noun: str) -> dict:
        if table not in self.__dict__:
            raise _names.not_initialised_error(self, noun)
        return self.__dict__[table]

    def __getattr__(self, name: str) -> Any:
        # Reached only when the instance has no such plain attribute.
        fields = self.__dict__
        for table in _TABLES:
            if table in fields and name in fields[table]:
                return fields[table][name]
        raise _names.missing_attribute_error(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            self._table_of("_parameters", "parameters")
            self._drop_name(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._table_of("_modules", "module")
            self._drop_name(name, "_modules")
            for hook in _hooks.GLOBAL_MODULE.values():
                result = hook(self, name, value)
                value = value if result is None else result
            self._modules[name] = value
        elif name in fields.get("_parameters", ()):
            if value is not None:
                raise _names.wrong_kind_error(self, name, value, "parameter")
            self._parameters[name] = None
        elif name in fields.get("_modules", ()):
            if value is not None:
                raise _names.wrong_kind_error(self, name, value, "child module")
            self._modules[name] = None
        elif isinstance(value, Buffer) and "_buffers" in fields:
            self._drop_name(name, "_buffers")
            fields["_buffers"].pop(name, None)
            self.register_buffer(name, value, value.persistent)
        elif name in fields.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise _names.wrong_kind_error(self, name, value, "buffer")
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)
            changes.now = object()

    def _drop_name(self, name: str, keep: str) -> None:
        fields = self.__dict__
        fields.pop(name, None)
        for table in _TABLES:
            if table != keep:
                fields[table].pop(name, None)
        fields["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)
        changes.note()

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    # -- traversal
    # -----------------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module and all below it with their dotted names; a shared one once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the direct children with their names; a shared one once."""
        seen = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Module]:
        """Yield the direct children."""
        for _, child in self.named_children():
            yield child

    def _members_of(self, table: str, prefix: str, recurse: bool, unique: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=unique) if recurse else [(prefix, self)]
        for start, module in modules:
            for name, tensor in module.__dict__[table].items():
                if tensor is None or (unique and id(tensor) in seen):
                    continue
                seen.add(id(tensor))
                yield (f"{start}.{name}" if start else name), tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters with their dotted names; a shared one once."""
        return self._members_of("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, e.g. for an optimizer."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their dotted names; a shared one once."""
        return self._members_of("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """Return the module below this one with the dotted name `target`."""
        module = self
        for name in target.split(".") if target else ():
            known = (path for path, _ in self.named_modules())
            if not hasattr(module, name):
                raise _names.missing_target_error(
                    self, target, f"{type(module).__name__} has no attribute `{name}`", known
                )
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise _names.missing_target_error(self, target, f"`{name}` is not an nn.Module", known)
        return module

    def _tensor_named(self, target: str, table: str, noun: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module.__dict__[table]:
            known = (path for path, _ in self._members_of(table, "", True, False))
            raise _names.missing_target_error(self, target, f"`{target}` is not {noun} of {type(self).__name__}", known)
        return module.__dict__[table][name]

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter with the dotted name `target`."""
        return self._tensor_named(target, "_parameters", "a parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with the dotted name `target`."""
        return self._tensor_named(target, "_buffers", "a buffer")

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` in the place with the dotted name `target`.

        Args:
            target: the dotted name.
            module: the new module.
            strict: raise if the name does not exist yet.
        """
        path, _, name = target.rpartition(".")
        if not name:
            rule = "Cannot set the submodule without a target name!"
            fail("value", f"{type(self).__name__}.set_submodule({target!r})", repr(target), rule, "'layer.0'")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            known = (path for path, _ in self.named_modules())
            raise _names.missing_target_error(self, target, f"{type(parent).__name__} has no attribute `{name}`", known)
        if not isinstance(module, Module):
            raise _names.not_module_error(f"set_submodule({target!r}, ...)", module)
        setattr(parent, name, module)

    # -- modes and gradients
    # -------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set training mode (dropout drops, batch norm uses the batch) for this module and all below it."""
        if not isinstance(mode, bool):
            fail(
                "value",
                f"{type(self).__name__}.train({mode!r})",
                f"a {type(mode).__name__}",
                "training mode is expected to be boolean",
                "train() or train(False)",
            )
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode; the same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Let the parameters record gradients, or stop them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        """Set the parameters' gradients to zero in place, or drop them.

        Args:
            set_to_none: drop them. The default is OneFlow's, False, or under the name torch PyTorch's, True.
        """
        zero_grads(self.parameters(), set_to_none)

    # -- moving and casting
    # --------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` on every module below this one, children first, then on itself; the way to initialise."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Replace all parameters, gradients and buffers by the results of `fn`; parameters keep their identity."""
        done: set[int] = set()
        with no_grad():
            for module in self.modules():
                for parameter in module._parameters.values():
                    if parameter is None or id(parameter) in done:
                        continue
                    done.add(id(parameter))
                    grad = parameter.grad
                    parameter.grad = None
                    value = fn(alias(parameter))
                    if not is_shared(parameter):
                        put_from(parameter, value)
                    else:  # others see its storage: leave that to them
                        parameter.data = value
                    if grad is not None:
                        parameter.grad = fn(grad.detach())
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        module._buffers[name] = fn(buffer)
        changes.note()
        return self

    # -- state
    # ---------------------------------------------------------------------------------------------------------

    def state_dict(
        self, *args: Any, destination: dict | None = None, prefix: str = "", keep_vars: bool | None = None
    ) -> dict[str, Any]:
        """Return parameters and persistent buffers by dotted name.

        Args:
            args: PyTorch's old form: destination, prefix and keep_vars by place.
            destination: a dict to fill instead of a new one.
            prefix: put before every name.
            keep_vars: return the parameters and buffers themselves; else detached tensors on the same storage. The
                default is OneFlow's, True, or under the name torch PyTorch's, False.
        """
        destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args) :])
        return _state.state_dict(self, destination, prefix, not naming.is_torch() if keep_vars is None else keep_vars)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Put the module's own state, without its children's, into `destination`; may be overridden."""
        _state.save_own(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _state.IncompatibleKeys:
        """Copy the tensors of `state_dict` into this module, whatever placement and sbp either has.

        Args:
            state_dict: names to tensors, as `state_dict` returns; local ones for local tensors of this module, global
                ones for global.
            strict: raise when names are missing or unexpected.
            assign: take the tensors themselves instead of copying their values.

        Returns:
            ``missing_keys`` and ``unexpected_keys``.

        Raises:
            StateDictError: shapes or kinds (local, global) differ, or, with `strict`, names do; nothing is loaded.
            OpTypeError: `state_dict` is no mapping.
        """
        return _state.load_state_dict(self, state_dict, strict, assign)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Load the module's own state, without its children's; may be overridden, as in PyTorch."""
        assign = local_metadata.get("assign_to_params_buffers", False)
        found = (missing_keys, unexpected_keys, error_msgs)
        _state.load_own(self, state_dict, prefix, local_metadata, strict, *found, assign)

    # -- text
    # ----------------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text in the parentheses of this module's repr; override."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._modules.items()]
        if not children and len(extra) <= 1:
            return f"{self._get_name()}({''.join(extra)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra + children) + "\n)"


def alias(tensor: Tensor) -> Tensor:
    """Return a tensor of the same payload that shares no storage and no tape."""
    return wrap_any(payload(tensor), tensor.layout)
