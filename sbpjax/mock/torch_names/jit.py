"""`torch.jit`: every function is its own script, since JAX traces programs; files of TorchScript are not read."""

from __future__ import annotations

from typing import Any
from typing import Final as Final

from sbpjax.nn.module import Module

from .absent import absent

_WHY = "TorchScript is a runtime of its own"


class ScriptModule(Module):
    """A base for modules of one's own; `script` and `trace` return what they are given, which is none of these."""


def script(obj=None, *args, **kwargs) -> Any:
    """Return the function, class or module itself."""
    return obj if obj is not None else script


def ignore(fn=None, drop: bool = False, **kwargs) -> Any:
    """Return the function itself; also as ``@ignore()``."""
    return fn if callable(fn) else lambda function: function


unused = ignore


def export(fn) -> Any:
    """Return the function itself."""
    return fn


interface = script_method = script_if_tracing = export


def trace(func, example_inputs=None, *args, **kwargs) -> Any:
    """Return the function or module itself."""
    return func


def trace_module(mod, inputs=None, *args, **kwargs) -> Any:
    """Return the module itself."""
    return mod


def freeze(mod, *args, **kwargs) -> Any:
    """Return the module itself."""
    return mod


optimize_for_inference = freeze


def is_scripting() -> bool:
    """Return False: nothing is compiled by TorchScript."""
    return False


def is_tracing() -> bool:
    """Return False: TorchScript traces nothing here."""
    return False


def annotate(the_type, the_value) -> Any:
    """Return the value."""
    return the_value


def isinstance(obj, target_type) -> bool:
    """Return whether an object is of a type."""
    import builtins

    return builtins.isinstance(obj, target_type)


class Attribute:
    """A value with a type."""

    def __new__(cls, value, type=None):
        return value


ScriptFunction = type("ScriptFunction", (), {"__doc__": "Nothing is of this class: scripts stay functions."})
TopLevelTracedModule = type("TopLevelTracedModule", (ScriptModule,), {"__doc__": "Nothing is of this class."})
RecursiveScriptModule = type("RecursiveScriptModule", (ScriptModule,), {"__doc__": "Nothing is of this class."})
load = absent("torch.jit.load", _WHY, "sbpjax.load_graph(path)  # of a graph exported with graph.export(path)")
save = absent("torch.jit.save", _WHY, "graph.export(path)  # of an nn.Graph")
fork = absent("torch.jit.fork", _WHY, "call the function: JAX runs independent ops concurrently")
wait = absent("torch.jit.wait", _WHY, "call the function")
set_fusion_strategy = export


class TracerWarning(Warning):
    """What PyTorch's tracer warns of."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: there are none."""


class Error(RuntimeError):
    """What a TorchScript program would raise."""


_overload = _overload_method = export
strict_fusion = type(
    "strict_fusion", (), {"__enter__": lambda s: s, "__exit__": lambda s, *e: None, "__doc__": "Nothing."}
)


def _unwrap_optional(x: Any) -> Any:
    """Return a value that is not None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


_get_trace_graph = absent("torch.jit._get_trace_graph", _WHY, "jax.make_jaxpr of a function from nn.to_pure(module)")
