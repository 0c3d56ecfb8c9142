"""`torch.jit`: `script` and `trace` return their argument, since JAX traces programs; no TorchScript files."""

from __future__ import annotations

from typing import Any
from typing import Final as Final

from sbpjax.nn.module import Module

from .absent import absent

_WHY = "TorchScript is a runtime of its own"


class ScriptModule(Module):
    """A base for modules of one's own; `script` and `trace` return their argument, which is none of these."""


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


interface = script_method = script_if_tracing = _script_if_tracing = export


def trace(func, example_inputs=None, *args, **kwargs) -> Any:
    """Return the function or module itself."""
    return func


def is_scripting() -> bool:
    """Return False: nothing is compiled by TorchScript."""
    return False


def is_tracing() -> bool:
    """Return False: TorchScript traces nothing here."""
    return False


def annotate(the_type, the_value) -> Any:
    """Return the value."""
    return the_value


ScriptFunction = type("ScriptFunction", (), {"__doc__": "Nothing is of this class: scripts stay functions."})
RecursiveScriptModule = type("RecursiveScriptModule", (ScriptModule,), {"__doc__": "Nothing is of this class."})
load = absent("torch.jit.load", _WHY, "sbpjax.load_graph(path)  # of a graph exported with graph.export(path)")
save = absent("torch.jit.save", _WHY, "graph.export(path)  # of an nn.Graph")


_overload = _overload_method = _copy_to_script_wrapper = export
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list
