"""`Reports`: the part of `Graph` that reports a program's traffic, memory, cost and text.

The reports are made in `sbpjax.inspect`, a package above this one, which registers itself in `report_registry.REPORTS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sbpjax._core.runtime.signature_errors import explain_arguments
from sbpjax._core.tracing.capture import State
from sbpjax.errors import GraphError

from .fitting import find_program, owners_of, prepared_or_last
from .program.program import Program
from .report_registry import REPORTS

if TYPE_CHECKING:
    from sbpjax._core.inspect.memory import Memory
    from sbpjax._core.inspect.profile import Profile
    from sbpjax._core.inspect.traffic import Traffic


@explain_arguments
class Reports:
    """The report methods of `Graph`."""

    if TYPE_CHECKING:  # attributes of `Graph`
        name: str
        program: Program
        build_graph: Callable[..., None]

    def __repr__(self) -> str:
        return REPORTS["text"](self)

    def memory(self, *args: Any, compiled: bool = True, **kwargs: Any) -> Memory:
        """Return the memory that a step needs on one device, by kind; nothing runs.

        Args:
            args: as for `compile`; none for the program of the last call.
            compiled: the compiler's figure; else an estimate from the plan, which takes no compilation.
            kwargs: the same by name.

        Raises:
            GraphError: no arguments, and the graph was not built.
            OutOfMemoryError: the compiler finds that the device has less.
        """
        if args or kwargs:
            self.build_graph(*args, **kwargs)
        return REPORTS["memory"](find_program(self, "memory"), State(owners_of(self)), compiled)

    def traffic(self, *args: Any, **kwargs: Any) -> Traffic:
        """Return the bytes that a step moves between devices, planned and compiled, by kind; nothing runs.

        Raises:
            GraphError: no arguments, and the graph was not built.
            MixedTensorError: the program runs on one device, and moves nothing.
        """
        if args or kwargs:
            self.build_graph(*args, **kwargs)
        return REPORTS["traffic"](find_program(self, "traffic"))

    def explain(self, *args: Any, check: bool = True, level: int = 1, **kwargs: Any) -> Any:
        """Return the traffic of a step by purpose: gradients, weights, activations, each with bytes and time.

        Nothing runs.

        Args:
            *args: arguments of ``build``, abstract or not; none for the program of the last call.
            check: compile the program and hold the plan's sums against its collectives.
            level: 1 for a summary by purpose, of a pipeline by stage; 2 for every boxing with its module, source line,
                collective and bytes, of a pipeline for every transfer and task.
            **kwargs: arguments by name.

        Returns:
            A report: print it, show it in a notebook, or, without a pipeline, take ``to_html()`` or ``to_dict()``.

        Raises:
            MixedTensorError: the program runs on one device, and moves nothing.
            GraphError: no arguments, and the graph was not built.

        Example:
            >>> print(graph.explain(x, y))
        """
        return REPORTS["explain"](self, prepared_or_last(self, "explain", args, kwargs)[1], check, level)

    def pipeline_report(self, *args: Any, rounds: int = 9, **kwargs: Any) -> Any:
        """Return the working and idle times of each pipeline stage, the bubble, and the memory of each stage.

        Tasks are timed alone, on zeros; no parameter changes.

        Args:
            *args: arguments of ``build``, abstract or not; none for the program of the last call.
            rounds: how often each task is timed; the median counts. In each round, every task runs once.
            **kwargs: arguments by name.

        Raises:
            GraphError: the graph is on one placement, or has no micro-batches.

        Example:
            >>> graph.pipeline_report().save("step.svg")
        """
        return REPORTS["pipeline_report"](self, prepared_or_last(self, "pipeline_report", args, kwargs)[1], rounds)

    def profile(
        self, *args: Any, steps: int = 10, directory: str | os.PathLike | None = None, **kwargs: Any
    ) -> Profile:
        """Run steps under the profiler, and return the time per op and module.

        Parameters, optimizers, schedules and the random stream are restored afterwards. The program is compiled once
        more, since a program from the compiler's cache may carry the names of another graph.

        Args:
            *args: arguments of ``build``; none for zeros of the last call's signature.
            steps: how many steps are measured; one more runs before them.
            directory: where the trace for TensorBoard and Perfetto goes; by default a new temporary directory. Of
                several processes each takes a folder of its own in it, ``rank0`` and so on.
            **kwargs: arguments by name.

        Returns:
            A `Profile`: print it, or show it in a notebook.

        Raises:
            GraphError: no arguments, and the graph was not built; less than one step.

        Example:
            >>> print(graph.profile(x, y, steps=5, directory="traces"))
        """
        return REPORTS["profile"](self, args, kwargs, steps, directory)

    def auto_parallel_report(self, *args: Any, against: Sequence[str] | None = None, **kwargs: Any) -> Any:
        """Return the layouts of the tensors of a step and their cost, beside the usual strategies; nothing runs.

        The plan is that of `build`'s program: with ``config.enable_auto_parallel(True)`` the one that was found. The
        other strategies are planned for this call, which takes as long as the plan did, for each.

        Args:
            *args: arguments of ``build``, abstract or not; none for the program of the last call.
            against: strategies to compare with: ``"dp"``, ``"zero1"``, ``"fsdp"``, ``"tp"``, ``"own"``, on several
                axes their products such as ``"dp+tp"``; all of them by default.
            **kwargs: arguments by name.

        Returns:
            A `_core.inspect.auto.report.Report`: print it, show it in a notebook, or save it as a page, a picture or
            a plan.

        Raises:
            GraphError: no arguments, and the graph was not built.
            MixedTensorError: the program runs on one device, or on several placements.

        Example:
            >>> graph.auto_parallel_report(x, y).save("plan.html")
        """
        return REPORTS["auto_parallel_report"](
            self, *prepared_or_last(self, "auto_parallel_report", args, kwargs), against
        )

    def sensitivity(self, name: str, sbp: Any) -> Any:
        """Return the cost of another layout for one tensor of the last program, and the layouts that would follow.

        Args:
            name: a parameter, state, argument or boundary activation as `auto_parallel_report` names it, or a pattern.
            sbp: its nd-sbp, in any form.

        Raises:
            SbpError: no tensor has that name, or the layout does not fit it.

        Example:
            >>> print(graph.sensitivity("model.blocks.*.up.weight", "B"))
        """
        return REPORTS["sensitivity"](self, *prepared_or_last(self, "auto_parallel_report", (), {}), name, sbp)

    def stablehlo(self, *args: Any, **kwargs: Any) -> str:
        """Return the text of the program that goes to the compiler; nothing is compiled.

        Args:
            *args: arguments of ``build``, abstract or not; none for the program of the last call.
            **kwargs: arguments by name.

        Raises:
            GraphError: no arguments, and the graph was not built; or it is a pipeline, which has a program per task.

        Example:
            >>> "stablehlo.dot_general" in graph.stablehlo(x)
        """
        return self._one_program("stablehlo", args, kwargs).lower().as_text()

    def hlo(self, *args: Any, **kwargs: Any) -> str:
        """Return the text of the compiled program, with its fusions and collectives; nothing runs.

        Args:
            *args: arguments of ``build``, abstract or not; none for the program of the last call.
            **kwargs: arguments by name.

        Raises:
            GraphError: no arguments, and the graph was not built; or it is a pipeline, which has a program per task.

        Example:
            >>> print(graph.hlo(x))
        """
        return self._one_program("hlo", args, kwargs).compile().as_text()

    def _one_program(self, operation: str, args: tuple, kwargs: dict) -> Program:
        program = prepared_or_last(self, operation, args, kwargs)[1]
        if program.pipeline is not None:
            raise GraphError(
                f"{self.name}.{operation}()",
                "a pipeline",
                "each task of a pipeline is a program of its own",
                "graph.pipeline_report() shows the tasks; put the model on one placement to read one program",
            )
        return program

    def _repr_html_(self) -> str:
        return REPORTS["page"](self)
