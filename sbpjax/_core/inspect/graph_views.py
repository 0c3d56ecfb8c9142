"""The reports that methods of `Graph` and of compiled functions return."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import TensorSpec
from sbpjax.graph.fitting import prepare_program
from sbpjax.graph.report_registry import register_report

from . import memory as _memory
from .communication import Communication
from .graph_text import Debug, text
from .html import page
from .profile import Profile, example_arguments
from .profile import profile as _profile
from .traffic import Traffic, traffic_of

register_report(page)
register_report(text)
register_report(Debug)


@register_report
def memory(program: Any, state: State, compiled: bool) -> _memory.Memory:
    """Return the memory that a program needs on one device."""
    if program.pipeline is not None:
        from sbpjax._core.inspect.pipeline.sizes import memory as of_stages

        return of_stages(program, state, compiled)
    return _memory.memory(program, state) if compiled else _memory.estimate(program, state)


@register_report
def traffic(program: Any) -> Traffic:
    """Return the traffic of a program between devices, by kind."""
    if program.pipeline is not None:
        from sbpjax._core.inspect.pipeline.sizes import traffic_of as of_stages

        return of_stages(program)
    return traffic_of(program)


@register_report
def explain(graph: Any, program: Any, check: bool) -> Any:
    """Return the traffic of a step between devices."""
    if program.pipeline is not None:
        from sbpjax._core.inspect.pipeline.explain import PipelineCommunication

        return PipelineCommunication(graph, program)
    return Communication(graph, program, check)


@register_report
def pipeline_report(graph: Any, program: Any, rounds: int) -> Any:
    """Return the busy and idle times of each pipeline stage."""
    from sbpjax._core.inspect.pipeline.report import report

    return report(graph, program, rounds)


@register_report
def profile(graph: Any, args: tuple, kwargs: dict, steps: int, directory: str | os.PathLike | None) -> Profile:
    """Profile a step by op and module; without arguments zeros of the last call's signature are taken."""
    if not args and not kwargs:
        leaves, structure = tree.flatten(graph.program.arguments)
        zeros = iter(example_arguments(graph.program))
        found = [next(zeros) if isinstance(leaf, TensorSpec) else leaf for leaf in leaves]
        args, kwargs = tree.unflatten(structure, found)
    state, program, call = prepare_program(graph, args, kwargs)
    return _profile(graph, program, state, list(call.tensors), steps, directory)


@register_report
def auto_parallel_report(graph: Any, state: State, program: Any, against: Sequence[str] | None) -> Any:
    """Return the layouts of the tensors of a step, beside the usual strategies."""
    from sbpjax._core.inspect.auto.graph_views import report_of

    return report_of(graph, state, program, against)


@register_report
def sensitivity(graph: Any, state: State, program: Any, name: str, sbp: Any) -> Any:
    """Return the cost of another layout for one tensor."""
    from sbpjax._core.inspect.auto.graph_views import sensitivity_of

    return sensitivity_of(graph, state, program, name, sbp)
