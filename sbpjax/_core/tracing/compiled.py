"""`compile_function`: one program per signature of a function or module, on the tape, as ``torch.compile``.

Worked case: ``fast = compiled(model)``; ``fast(x).sum().backward()`` runs two programs, the model's and its backward,
and the parameters get their gradients. Buffers that the model writes (statistics of batch norm) are outputs of the
program and are written back. The backward computes the forward's intermediate values again rather than keeping them.

A call whose Python needs the value of a tensor runs uncompiled, with a warning once, as PyTorch breaks its graphs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor.handle.dtype import get_default_dtype
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.storage.payload import is_traced
from sbpjax.errors import AutogradError, DataDependentError, OpError
from sbpjax.nn.module import Module

from .capture import State
from .escaped_tensors import MOST_ATTEMPTS, EscapedTensors, Recaptured
from .signature import Call, signature_of
from .transform import Function, Trace


def compile_function(fn: Any, *, fullgraph: bool = False) -> Any:
    """Return ``fn`` as one compiled program per signature of its arguments, with gradients.

    Args:
        fn: a function of tensors, or a module, which is compiled in place of its call and is returned itself.
        fullgraph: raise where a call cannot be traced, instead of running it as it is.

    Returns:
        A function that is called as ``fn``; the module itself.

    Example:
        >>> f = compile_function(lambda x, y: (x @ y).relu())
    """
    if isinstance(fn, Module):
        return CompiledModule(fn, fullgraph)
    wrapped = CompiledFunction(fn, fullgraph)

    @functools.wraps(fn)
    def call(*args, **kwargs):
        return wrapped(*args, **kwargs)

    return call


class CompiledFunction:
    """A function with its traced programs, one per signature; the latest sixteen are kept.

    ``owners``: the modules that it reads; by default those that it closes over or names as globals.
    """

    _MOST = 16

    def __init__(self, fn: Callable, fullgraph: bool = False, owners: list | None = None) -> None:
        self._fn = fn
        self._fullgraph = fullgraph
        self._owners = owners
        self._traces: dict = {}
        self._warned = False

    @hide_mesh
    def __call__(self, *args, **kwargs):
        """Run the program for these arguments, traced first if they are of a new signature."""
        call = Call(args, kwargs)
        if any(is_traced(t) for t in call.tensors):
            return self._fn(*args, **kwargs)  # part of a program that is being traced
        owners = _modules_of(self._fn) if self._owners is None else self._owners
        for attempt in range(MOST_ATTEMPTS):
            try:
                function, trace = self._find_or_trace(owners, call, args, kwargs, attempt)
                break
            except Recaptured:
                continue
            except (DataDependentError, AutogradError, OpError) as error:
                if self._fullgraph:
                    raise
                self._warn(error)
                return self._fn(*args, **kwargs)
        return function.results.fill_places(trace.run(call.tensors))

    def _find_or_trace(self, owners: list, call: Call, args, kwargs, attempt: int) -> tuple[Function, Trace]:
        """Return the program for a call, that of an earlier call if there is one."""
        key = self._key(owners, call)
        found = self._traces.get(key)
        if found is None:
            found = self._trace_call(owners, args, kwargs, attempt)
            key = self._key(owners, call)
            if len(self._traces) >= self._MOST:
                self._traces.pop(next(iter(self._traces)))
            self._traces[key] = found
        elif found[1].unsettled is not None:
            try:
                self._check_repeats(found[1], owners, args, kwargs)
            except Recaptured:
                self._traces.pop(key)
                raise
        return found

    def _key(self, owners: list, call: Call) -> tuple:
        state = State(owners)
        casting = mode.autocast and mode.autocast.key
        key = signature_of(call, state, self._fn, (casting, mode.grad, get_default_dtype()))
        return key, tuple(map(id, state.tensors))

    def _check_repeats(self, trace: Trace, owners: list, args, kwargs) -> None:
        """Trace the function of a program that stores tensors again, now that it may find them."""
        kept = _collect_escaped(owners)
        _, further = self._trace_call(owners, args, kwargs, MOST_ATTEMPTS - 1, kept)
        kept.restore()
        kept.undo([t for t in (output.tensor() for output in further.left) if t is not None])
        if further.unsettled != trace.unsettled:
            for output in trace.left:
                output.forget()
            raise Recaptured
        trace.unsettled = None

    def _trace_call(
        self, owners: list, args, kwargs, attempt: int, kept: EscapedTensors | None = None
    ) -> tuple[Function, Trace]:
        function = Function(self._fn, args, kwargs)
        kept = _collect_escaped(owners) if kept is None else kept
        name = getattr(self._fn, "__name__", type(self._fn).__name__)
        body = lambda arrays: function.on_arrays(arrays)[0]  # noqa: E731
        last = attempt == MOST_ATTEMPTS - 1
        try:
            trace = Trace(f"compile({name})", body, function.tensors, True, kept, State(owners).tensors, last)
        except Recaptured:
            raise
        except BaseException:
            kept.restore()  # a trace that fails changes nothing
            raise
        function.forget_arguments()
        return function, trace

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            first = str(error).partition("\n")[0]
            name = getattr(self._fn, "__name__", type(self._fn).__name__)
            warn(f"compile({name}) runs uncompiled where it cannot be traced: {first}")


class CompiledModule(Module):
    """A module whose calls run as programs; everything else is the module's own."""

    def __init__(self, module: Module, fullgraph: bool = False) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_programs"] = CompiledFunction(module, fullgraph, [module])

    def forward(self, *args, **kwargs):
        """Run the module's program."""
        return self._programs(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return the compiled module's attribute."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or "_orig_mod" not in self._modules:
                raise
            return getattr(self._modules["_orig_mod"], name)


def _collect_escaped(owners: list) -> EscapedTensors:
    return EscapedTensors([m for owner in owners for m in owner.modules()])


def _modules_of(fn: Callable) -> list[Module]:
    """Return the modules that a function reads: its own, those it closes over, those it names as globals."""
    fn = inspect.unwrap(fn)
    owner = getattr(fn, "__self__", None)
    code = getattr(fn, "__code__", None)
    found = [owner]
    if code is not None:
        found += [cell.cell_contents for cell in fn.__closure__ or () if _is_filled(cell)]
        found += [fn.__globals__.get(name) for name in code.co_names]
    return [m for m in found if isinstance(m, Module)]


def _is_filled(cell) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # an empty cell raises
    except ValueError:
        return False
    return True
