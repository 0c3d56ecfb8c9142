"""`torch.compiler` and `torch._dynamo`: queries of compilation, and marks on functions without effect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sbpjax._core.tensor.handle.mode import mode


def is_compiling() -> bool:
    """Return whether a program is being traced now."""
    return mode.capture is not None


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn=None, recursive: bool = True, **options) -> Any:
    """Return the function itself: a trace passes through every function."""
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn) -> Any:
    """Return the function itself."""
    return fn


assume_constant_result = disallow_in_graph = graph_break = forbid_in_graph = allow_in_graph


def reset() -> None:
    """Do nothing: compiled programs belong to the functions that `compile` returned."""


def mark_dynamic(*args, **kwargs) -> None:
    """Do nothing: a new shape compiles anew."""


mark_static = mark_static_address = maybe_mark_dynamic = mark_dynamic


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no CUDA graphs."""


config = SimpleNamespace(suppress_errors=False, cache_size_limit=8, recompile_limit=8, verbose=False, disable=False)
utils = SimpleNamespace(is_compiling=is_compiling)
OptimizedModule = type("OptimizedModule", (), {"__doc__": "Nothing is of this class."})


class TransformGetItemToIndex:
    """A context that changes nothing: indexing with tensors is traced as it is."""

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        pass
