"""`Module`: the base of every layer and model, with PyTorch's semantics.

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Linear(64, 256)
            self.down = nn.Linear(256, 64)

        def forward(self, x):
            return self.down(nn.functional.gelu(self.up(x)))

Assigning a `Parameter`, a `Module` or (through `register_buffer`) a tensor to an attribute registers it by that
name. What a module computes says nothing of where it runs: `to_global` lays its tensors out, each layer as it
likes:

    mlp = MLP().to_global(placement, sbp.broadcast)      # every tensor
    mlp.up.to_global(placement, sbp.split(0))            # then this layer's otherwise
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sbpjax.nn.hooks as _hooks
import sbpjax.nn.names as _names
from sbpjax.autograd.node import RemovableHandle
from sbpjax.nn import state as _state
from sbpjax.nn.parameter import Parameter
from sbpjax.ops.dims import fail
from sbpjax.tensor import Tensor
from sbpjax.tensor.dispatch import wrap_any
from sbpjax.tensor.mode import mode

_TABLES = ("_parameters", "_buffers", "_modules")


class Module:
    """Base class of layers and models; override `forward`."""

    training: bool
    dump_patches = False
    _version = 1

    def __init__(self) -> None:
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = OrderedDict()
        fields["_buffers"] = OrderedDict()
        fields["_non_persistent_buffers_set"] = set()
        fields["_modules"] = OrderedDict()
        fields["_forward_pre_hooks"] = OrderedDict()
        fields["_forward_hooks"] = OrderedDict()
        fields["_backward_pre_hooks"] = OrderedDict()
        fields["_backward_hooks"] = OrderedDict()
        fields["_state_dict_pre_hooks"] = OrderedDict()
        fields["_state_dict_hooks"] = OrderedDict()
        fields["_load_state_dict_pre_hooks"] = OrderedDict()
        fields["_load_state_dict_post_hooks"] = OrderedDict()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; every subclass overrides this."""
        raise _names.no_forward(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if mode.blocks is not None:
            return mode.blocks.call(self, args, kwargs)
        return self._run(args, kwargs)

    def _run(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run the hooks and `forward`."""
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _hooks.GLOBAL_FORWARD
            or _hooks.GLOBAL_FORWARD_PRE
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
        _names.check_name(self, name, self._initialised("_parameters", "parameters"), "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise _names.wrong_kind(self, name, param, "parameter")
        if param is not None and param.grad_fn is not None:
            raise _names.no_leaf(self, name)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is state but no parameter, such as running statistics.

        Args:
            name: the attribute.
            tensor: the buffer; None keeps the name without a tensor.
            persistent: whether it belongs to `state_dict`.
        """
        _names.check_name(self, name, self._initialised("_buffers", "buffer"), "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise _names.wrong_kind(self, name, tensor, "buffer")
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a child module under `name`."""
        if not isinstance(module, Module) and module is not None:
            raise _names.no_module(f"{type(self).__name__}.add_module({name!r}, ...)", module)
        _names.check_name(self, name, self._initialised("_modules", "module"), "module")
        self._modules[name] = module

    register_module = add_module

    def _initialised(self, table: str, what: str) -> dict:
        if table not in self.__dict__:
            raise _names.not_initialised(self, what)
        return self.__dict__[table]

    def __getattr__(self, name: str) -> Any:
        # Reached only when the instance has no such plain attribute.
        fields = self.__dict__
        for table in _TABLES:
            found = fields.get(table)
            if found is not None and name in found:
                return found[name]
        raise _names.no_attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            self._initialised("_parameters", "parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._initialised("_modules", "module")
            self._forget(name, "_modules")
            self._modules[name] = value
        elif name in fields.get("_parameters", ()):
            if value is not None:
                raise _names.wrong_kind(self, name, value, "parameter")
            self._parameters[name] = None
        elif name in fields.get("_modules", ()):
            if value is not None:
                raise _names.wrong_kind(self, name, value, "child module")
            self._modules[name] = None
        elif name in fields.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise _names.wrong_kind(self, name, value, "buffer")
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, keep: str) -> None:
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

    def _named_members(self, table: str, prefix: str, recurse: bool, unique: bool) -> Iterator[tuple[str, Any]]:
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
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, as an optimizer wants them."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their dotted names; a shared one once."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

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
                raise _names.no_target(self, target, f"{type(module).__name__} has no attribute `{name}`", known)
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise _names.no_target(self, target, f"`{name}` is not an nn.Module", known)
        return module

    def _get_tensor(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module.__dict__[table]:
            known = (path for path, _ in self._named_members(table, "", True, False))
            raise _names.no_target(self, target, f"`{target}` is not {what} of {type(self).__name__}", known)
        return module.__dict__[table][name]

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter with the dotted name `target`."""
        return self._get_tensor(target, "_parameters", "a parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with the dotted name `target`."""
        return self._get_tensor(target, "_buffers", "a buffer")

    # -- modes and gradients
    # -------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
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

    def eval(self) -> Module:
        """Set evaluation mode; the same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Let the parameters record gradients, or stop them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or set them to zero."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach() * 0

    # -- moving and casting
    # --------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Module:
        """Call `fn` on every module below this one, children first, then on itself; the way to initialise."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Module:
        """Replace every parameter, its gradient and every buffer by `fn` of it; parameters keep their identity."""
        from sbpjax.autograd import no_grad

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
                    if parameter._cell is None:
                        parameter._set(value._array, value._layout)
                    else:  # others see its storage: leave that to them
                        parameter.data = value
                    if grad is not None:
                        parameter.grad = fn(grad.detach())
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        module._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Move or cast all tensors: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``.

        Only floating-point tensors take a dtype. For placements use `to_global`.
        """
        from sbpjax.tensor.device import device as device_class
        from sbpjax.tensor.dtype import dtype as dtype_class

        if len(args) == 1 and isinstance(args[0], type):
            if issubclass(args[0], Module):  # what a graph's proxy of a module stands for
                return self
            if hasattr(args[0], "of_module"):  # nn.graph.GraphModule: what graphs keep about this module
                return args[0].of_module(self)
        device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
        kwargs.pop("non_blocking", None)
        asked, fix = f"{type(self).__name__}.to(...)", "model.to('cuda'), model.to(sbpjax.bfloat16)"
        if kwargs:
            seen = f"keyword argument {next(iter(kwargs))!r}"
            fail("type", asked, seen, "it takes device=, dtype= and non_blocking=; for placements use to_global", fix)
        for arg in args:
            if isinstance(arg, Tensor):
                device, dtype = arg.device, arg.dtype
            elif isinstance(arg, dtype_class):
                dtype = arg
            elif isinstance(arg, (str, device_class)) and device is None:
                device = arg
            elif not isinstance(arg, bool) and arg is not None:
                rule = "Module.to() takes a device, a dtype or a tensor; for placements use to_global"
                fail("type", asked, f"a {type(arg).__name__}", rule, fix)
        if dtype is not None and not dtype.is_floating_point:
            fail("type", asked, f"dtype={dtype}", "nn.Module.to only accepts floating point dtypes", fix)

        def convert(tensor: Tensor) -> Tensor:
            if dtype is not None and tensor.is_floating_point():
                tensor = tensor.to(dtype)
            return tensor if device is None else tensor.to(device)

        return self._apply(convert)

    def _cast(self, dtype: Any) -> Module:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Module:
        """Cast all floating-point tensors to float32."""
        import sbpjax

        return self._cast(sbpjax.float32)

    def double(self) -> Module:
        """Cast all floating-point tensors to float64."""
        import sbpjax

        return self._cast(sbpjax.float64)

    def half(self) -> Module:
        """Cast all floating-point tensors to float16."""
        import sbpjax

        return self._cast(sbpjax.float16)

    def bfloat16(self) -> Module:
        """Cast all floating-point tensors to bfloat16."""
        import sbpjax

        return self._cast(sbpjax.bfloat16)

    def cpu(self) -> Module:
        """Move all local tensors to the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | str | None = None) -> Module:
        """Move all local tensors to a GPU."""
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def to_global(self, placement: Any = None, sbp: Any = None) -> Module:
        """Lay out all parameters, gradients and buffers, in place.

        Args:
            placement: the devices; None keeps that of tensors which are global already.
            sbp: the layout of every tensor; lay single layers out otherwise with a call of their own afterwards.

        Returns:
            The module itself.

        Example:
            >>> model.to_global(flow.placement.all("cpu"), flow.sbp.broadcast)
        """
        return self._apply(lambda t: t.to_global(placement=placement, sbp=sbp))

    def to_empty(self, *, device: Any = None, placement: Any = None, sbp: Any = None) -> Module:
        """Give memory, with unspecified content, to all tensors, in place; the way out of ``device="meta"``.

        Args:
            device: where local tensors are made; for global ones give ``placement`` or nothing.
            placement: the devices; None keeps each global tensor's own.
            sbp: the layout of every tensor; None keeps each global tensor's own.

        Example:
            >>> with flow.abstract():
            ...     layer = nn.Linear(4, 4)
            >>> layer.to_empty(device="cpu").reset_parameters()
        """

        def empty(t: Tensor) -> Tensor:
            there, layout = (placement, sbp) if device is None else (None, None)
            if t.is_global and device is None:
                there, layout = placement or t.placement, t.sbp if sbp is None else sbp
            where = "cpu" if device is None and there is None else device
            return sbpjax.empty(*t.shape, dtype=t.dtype, device=where, placement=there, sbp=layout)

        import sbpjax

        return self._apply(empty)

    def to_local(self) -> Module:
        """Make all parameters, gradients and buffers local tensors, in place."""
        return self._apply(lambda t: t.to_local() if t.is_global else t)

    # -- state
    # ---------------------------------------------------------------------------------------------------------

    def state_dict(
        self, *, destination: dict | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return parameters and persistent buffers by dotted name.

        Args:
            destination: a dict to fill instead of a new one.
            prefix: put before every name.
            keep_vars: return the parameters themselves, not detached tensors on the same storage.
        """
        return _state.state_dict(self, destination, prefix, keep_vars)

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

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors, assign):
        _state.load_own(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors, assign)

    def get_extra_state(self) -> Any:
        """Return further state for `state_dict`; override together with `set_extra_state`."""
        raise _names.no_extra_state(self, "get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take the state that `get_extra_state` returned; override together with it."""
        raise _names.no_extra_state(self, "set_extra_state")

    # -- hooks
    # ---------------------------------------------------------------------------------------------------------

    def _register(self, table: str, value: Any, prepend: bool = False) -> RemovableHandle:
        handle = RemovableHandle(self.__dict__[table], value)
        if prepend:
            self.__dict__[table].move_to_end(handle.id, last=False)
        return handle

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before every forward; what it returns (not None) replaces the arguments."""
        return self._register("_forward_pre_hooks", (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after every forward; what it returns (not None) replaces the output."""
        return self._register("_forward_hooks", (hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward; a result replaces `grad_output`."""
        return self._register("_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the module's backward; may return a new `grad_input`."""
        return self._register("_backward_hooks", hook, prepend)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` collects."""
        return self._register("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict` has collected."""
        return self._register("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` before loading."""
        return self._register("_load_state_dict_pre_hooks", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may edit the keys."""
        return self._register("_load_state_dict_post_hooks", hook)

    # -- text
    # ----------------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what stands in the parentheses of this module's repr; override."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): " + _indent(repr(child)) for name, child in self._modules.items()]
        if not children and len(extra) <= 1:
            return f"{self._get_name()}({''.join(extra)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra + children) + "\n)"


def alias(tensor: Tensor) -> Tensor:
    """Return a tensor of the same payload that shares no storage and no tape."""
    return wrap_any(tensor._fresh()._array, tensor._layout)


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")
