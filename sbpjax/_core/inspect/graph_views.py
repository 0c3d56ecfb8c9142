"""The reports that methods of `Graph` and of compiled functions return."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import TensorSpec
from sbpjax.graph.fitting import prepare_program
from sbpjax.graph.report_registry import register_report

# Modules and not their names: one of these may be the first that is imported, and `sbpjax.graph` imports this one.
from . import graph_text, html
from . import memory as _memory
from . import profile as _profile
from . import traffic as _traffic

# Of pipelines, of the planner and of conversions: most graphs need none of them.
_communication = LazyModule("sbpjax._core.inspect.communication")
_stage_explain = LazyModule("sbpjax._core.inspect.pipeline.explain")
_stage_report = LazyModule("sbpjax._core.inspect.pipeline.report")
_stage_sizes = LazyModule("sbpjax._core.inspect.pipeline.sizes")
_auto = LazyModule("sbpjax._core.inspect.auto.graph_views")


@register_report
def page(graph: Any) -> str:
    """Return the HTML of a graph."""
    return html.page(graph)


@register_report
def text(graph: Any) -> str:
    """Return the text of a graph."""
    return graph_text.text(graph)


@register_report
def debug_output() -> graph_text.Debug:
    """Return the debug output of a new graph."""
    return graph_text.Debug()


@register_report
def memory(program: Any, state: State, compiled: bool) -> _memory.Memory:
    """Return the memory that a program needs on one device."""
    if program.pipeline is not None:
        return _stage_sizes.memory(program, state, compiled)
    return _memory.memory(program, state) if compiled else _memory.estimate(program, state)


@register_report
def traffic(program: Any) -> _traffic.Traffic:
    """Return the traffic of a program between devices, by kind."""
    if program.pipeline is not None:
        return _stage_sizes.traffic_of(program)
    return _traffic.traffic_of(program)


@register_report
def explain(graph: Any, program: Any, check: bool, level: int) -> Any:
    """Return the traffic of a step between devices."""
    if program.pipeline is not None:
        return _stage_explain.PipelineCommunication(graph, program, level)
    return _communication.Communication(graph, program, check, level)


@register_report
def pipeline_report(graph: Any, program: Any, rounds: int) -> Any:
    """Return the busy and idle times of each pipeline stage."""
    return _stage_report.report(graph, program, rounds)


@register_report
def profile(graph: Any, args: tuple, kwargs: dict, steps: int, directory: str | os.PathLike | None) -> _profile.Profile:
    """Profile a step by op and module; without arguments zeros of the last call's signature are taken."""
    if not args and not kwargs:
        leaves, structure = tree.flatten(graph.program.arguments)
        zeros = iter(_profile.example_arguments(graph.program))
        found = [next(zeros) if isinstance(leaf, TensorSpec) else leaf for leaf in leaves]
        args, kwargs = tree.unflatten(structure, found)
    state, program, call = prepare_program(graph, args, kwargs)
    return _profile.profile(graph, program, state, list(call.tensors), steps, directory)


@register_report
def auto_parallel_report(graph: Any, state: State, program: Any, against: Sequence[str] | None) -> Any:
    """Return the layouts of the tensors of a step, beside the usual strategies."""
    return _auto.report_of(graph, state, program, against)


@register_report
def sensitivity(graph: Any, state: State, program: Any, name: str, sbp: Any) -> Any:
    """Return the cost of another layout for one tensor."""
    return _auto.sensitivity_of(graph, state, program, name, sbp)
