"""Module hooks: removable handles, hooks for all modules, and the module call that runs them.

A forward pre-hook may change a module's arguments, a forward hook its result, a backward hook the gradients that
leave it. `Module.__call__` calls `forward` directly where no hook exists, `call_with_hooks` otherwise.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sbpjax._core.ops.dims import fail
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.nodes.node import RemovableHandle
from sbpjax._core.tensor.tape.function import Function
from sbpjax._core.tensor.tape.grad_mode import is_grad_enabled

if TYPE_CHECKING:
    from sbpjax.nn.module import Module

GLOBAL_FORWARD_PRE: OrderedDict[int, Callable] = OrderedDict()
GLOBAL_FORWARD: OrderedDict[int, tuple[Callable, bool, bool]] = OrderedDict()
GLOBAL_BACKWARD_PRE: OrderedDict[int, Callable] = OrderedDict()
GLOBAL_BACKWARD: OrderedDict[int, Callable] = OrderedDict()
GLOBAL_PARAMETER: OrderedDict[int, Callable] = OrderedDict()
GLOBAL_BUFFER: OrderedDict[int, Callable] = OrderedDict()
GLOBAL_MODULE: OrderedDict[int, Callable] = OrderedDict()


def any_global() -> bool:
    """Return whether any hook runs around the call of every module."""
    return bool(GLOBAL_FORWARD or GLOBAL_FORWARD_PRE or GLOBAL_BACKWARD or GLOBAL_BACKWARD_PRE)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Register ``hook(module, args)`` to run before the forward of every module; for debugging and profiling."""
    return RemovableHandle(GLOBAL_FORWARD_PRE, hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Register ``hook(module, args, output)`` to run after the forward of every module; for debugging and profiling.

    Args:
        hook: the hook.
        with_kwargs: call ``hook(module, args, kwargs, output)``.
        always_call: also call it when the forward fails.
    """
    return RemovableHandle(GLOBAL_FORWARD, (hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Register ``hook(module, grad_output)`` to run before the backward of every module."""
    return RemovableHandle(GLOBAL_BACKWARD_PRE, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Register ``hook(module, grad_input, grad_output)`` to run after the backward of every module."""
    return RemovableHandle(GLOBAL_BACKWARD, hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """Register ``hook(module, grad_input, grad_output)`` to run after the backward of every module; the older name."""
    return RemovableHandle(GLOBAL_BACKWARD, hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Register ``hook(module, name, parameter)`` to run when a parameter is registered; a result replaces it."""
    return RemovableHandle(GLOBAL_PARAMETER, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Register ``hook(module, name, buffer)`` to run when a buffer is registered; a result replaces it."""
    return RemovableHandle(GLOBAL_BUFFER, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Register ``hook(module, name, child)`` to run when a child is registered; a result replaces it."""
    return RemovableHandle(GLOBAL_MODULE, hook)


def call_with_hooks(module: Module, args: tuple, kwargs: dict) -> Any:
    """Run a module's forward with every hook around it; hooks for all modules come before its own."""
    called: set[int] = set()
    output = None
    try:
        for hook in GLOBAL_FORWARD_PRE.values():
            args = _arguments_after_hook(hook(module, args), args)
        for hook, with_kwargs in list(module._forward_pre_hooks.values()):
            if with_kwargs:
                result = hook(module, args, kwargs)
                if result is not None:
                    if not (isinstance(result, tuple) and len(result) == 2):
                        fail(
                            "shape",
                            f"a forward pre-hook of {type(module).__name__}",
                            f"it returned a {type(result).__name__}",
                            "a forward pre-hook with kwargs returns None or (args, kwargs)",
                            "return (args, kwargs)",
                        )
                    args, kwargs = result
            else:
                args = _arguments_after_hook(hook(module, args), args)
        watched = module._backward_pre_hooks or module._backward_hooks or GLOBAL_BACKWARD or GLOBAL_BACKWARD_PRE
        full = _BackwardHooks(module) if watched else None
        if full is not None:
            args = full.watch_inputs(args)
        output = module.forward(*args, **kwargs)
        for id_, (hook, with_kwargs, _) in (*GLOBAL_FORWARD.items(), *module._forward_hooks.items()):
            called.add(id_)
            result = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
            output = output if result is None else result
        if full is not None:
            output = full.watch_outputs(output)
        return output
    except Exception:
        # `always_call` hooks see failures too; their own failures must not hide the first one.
        for id_, (hook, with_kwargs, always) in (*GLOBAL_FORWARD.items(), *module._forward_hooks.items()):
            if always and id_ not in called:
                try:
                    hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
                except Exception as second:
                    warn(
                        f"a forward hook with always_call=True raised {second!r} after a failed forward",
                    )
        raise


def _arguments_after_hook(result: Any, args: tuple) -> tuple:
    if result is None:
        return args
    return result if isinstance(result, tuple) else (result,)


class _BackwardHooks:
    """Runs a module's backward hooks once per backward, when the gradients of its inputs are known.

    One identity node is inserted at the inputs and one at the outputs. The one at the outputs sees `grad_output` first
    (pre-hooks may change it); the one at the inputs sees `grad_input` last, then the backward hooks run with both.
    """

    def __init__(self, module: Module):
        self.module = module
        self.grad_output: tuple | None = None

    def watch_outputs(self, output: Any) -> Any:
        def on_backward(grads: tuple) -> tuple:
            for hook in [*GLOBAL_BACKWARD_PRE.values(), *self.module._backward_pre_hooks.values()]:
                result = hook(self.module, grads)
                if result is not None:
                    grads = result if isinstance(result, tuple) else (result,)
            self.grad_output = grads
            if not self.inputs_need_grad:
                self._run(None)
            return grads

        return _attach_backward_hook(output, on_backward)

    def watch_inputs(self, args: tuple) -> tuple:
        self.inputs_need_grad = is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args)
        return _attach_backward_hook(args, self._run)

    def _run(self, grads: tuple | None) -> tuple | None:
        for hook in [*GLOBAL_BACKWARD.values(), *self.module._backward_hooks.values()]:
            result = hook(self.module, grads if grads is not None else (None,), self.grad_output)
            if result is not None and grads is not None:
                grads = result if isinstance(result, tuple) else (result,)
        return grads


def _attach_backward_hook(value: Any, on_backward: Callable[[Any], Any]) -> Any:
    """Return `value` with its tensors passed through one identity node whose backward calls `on_backward`."""
    single = isinstance(value, Tensor)
    if not single and not isinstance(value, (tuple, list)):
        return value
    items = [value] if single else list(value)
    places = [i for i, item in enumerate(items) if isinstance(item, Tensor)]
    if not is_grad_enabled() or not any(items[i].requires_grad for i in places):
        return value

    class Identity(Function):
        @staticmethod
        def forward(ctx, *tensors: Any):
            outs = [t.view_as(t) for t in tensors]
            return tuple(outs) if len(outs) > 1 else outs[0]

        @staticmethod
        def backward(ctx, *grads: Any):
            new = on_backward(grads)
            return new if len(new) > 1 else new[0]

    outs = Identity.apply(*[items[i] for i in places])
    for i, out in zip(places, outs if isinstance(outs, tuple) else (outs,)):
        items[i] = out
    return items[0] if single else type(value)(items)
