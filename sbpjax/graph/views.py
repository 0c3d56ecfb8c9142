"""What a graph shows and gives away, as methods: what it moves, where its time goes, and itself as files.

Every method takes the arguments of ``build``, with or without data, or none for the program of the last call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import tree
from .capture import State
from .signature import as_tensor

if TYPE_CHECKING:
    from .profile import Profile

_SHOWN: dict[str, Callable[..., Any]] = {}


def shows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register what the method of a function's name returns: reports build on graphs, so graphs do not import them."""
    _SHOWN[function.__name__] = function
    return function


class Views:
    """The base of `sbpjax.graph.Graph` that has these methods."""

    def explain(self, *args: Any, check: bool = True, **kwargs: Any) -> Any:
        """Return what a step moves between devices: every boxing with its module, source line, collective and bytes.

        Nothing runs.

        Args:
            *args: arguments of ``build``, abstract or not; none for the program of the last call.
            check: compile the program and hold the plan's sums against its collectives.
            **kwargs: arguments by name.

        Raises:
            MixedTensorError: the program runs on one device, and moves nothing.
            GraphError: no arguments, and the graph was not built.

        Example:
            >>> print(graph.explain(x, y))
        """
        return _SHOWN["explain"](self, prepared(self, args, kwargs)[1], check)

    def pipeline_report(self, *args: Any, turns: int = 3, **kwargs: Any) -> Any:
        """Return when each stage of a pipeline works and waits, the bubble, and what it holds.

        Tasks are timed alone, on zeros; no parameter changes.

        Args:
            *args: arguments of ``build``, abstract or not; none for the program of the last call.
            turns: how often each task is timed; the median counts.
            **kwargs: arguments by name.

        Raises:
            GraphError: the graph lies on one placement, or has no micro-batches.

        Example:
            >>> graph.pipeline_report().save("step.svg")
        """
        return _SHOWN["pipeline_report"](self, prepared(self, args, kwargs)[1], turns)

    def profile(
        self, steps: int = 10, *args: Any, directory: str | os.PathLike | None = None, **kwargs: Any
    ) -> Profile:
        """Run steps under the profiler, and return which ops of which modules take the time.

        Parameters, optimizers, schedules and the random stream are as before afterwards. The program is compiled once
        more, since a program out of the compiler's cache may carry the names of another graph.

        Args:
            steps: how many steps are measured; one more runs before them.
            *args: arguments of ``build``; none for zeros of the last call's signature.
            directory: where the trace for TensorBoard and Perfetto goes; by default a new temporary directory. Of
                several processes each takes a folder of its own in it, ``rank0`` and so on.
            **kwargs: arguments by name.

        Returns:
            A `Profile`: print it, or show it in a notebook.

        Raises:
            GraphError: no arguments, and the graph was not built; less than one step.

        Example:
            >>> print(graph.profile(5, x, y, directory="traces"))
        """
        return _SHOWN["profile"](self, args, kwargs, steps, directory)

    def auto_parallel_report(self, *args: Any, against: Sequence[str] | None = None, **kwargs: Any) -> Any:
        """Return how the tensors of a step lie and what that costs, beside the usual strategies; nothing runs.

        The plan is that of `build`'s program: with ``config.enable_auto_parallel(True)`` the one that was found. The
        other strategies are planned for this call, which takes as long as the plan did, for each.

        Args:
            *args: arguments of ``build``, abstract or not; none for the program of the last call.
            against: strategies to compare with: ``"dp"``, ``"zero1"``, ``"fsdp"``, ``"tp"``, ``"own"``, on several
                axes their products such as ``"dp+tp"``; all of them by default.
            **kwargs: arguments by name.

        Returns:
            A `sbpjax.auto.report.Report`: print it, show it in a notebook, or save it as a page, a picture or a plan.

        Raises:
            MixedTensorError: the program runs on one device, or on several placements.

        Example:
            >>> graph.auto_parallel_report(x, y).save("plan.html")
        """
        return _SHOWN["auto_parallel_report"](self, *prepared(self, args, kwargs), against)

    def why(self, name: str, sbp: Any) -> Any:
        """Return what it would cost to lay one tensor of the last program otherwise, and what would follow.

        Args:
            name: a parameter, state, argument or boundary activation as `auto_parallel_report` names it, or a pattern.
            sbp: its nd-sbp, in any form.

        Raises:
            SbpError: no tensor has that name, or the layout does not fit it.

        Example:
            >>> print(graph.why("model.blocks.*.up.weight", "B"))
        """
        return _SHOWN["why"](self, *prepared(self, (), {}), name, sbp)

    def _repr_html_(self) -> str:
        return _SHOWN["page"](self)

    def export(
        self,
        path: str | os.PathLike,
        *args: Any,
        platforms: Sequence[str] | None = None,
        dynamic_batch: bool = False,
        key: bytes | None = None,
        **kwargs: Any,
    ) -> Path:
        """Write the graph as files that `sbpjax.load_graph` runs without the code of the model.

        Args:
            path: the directory to write: a StableHLO program, the weights as safetensors, and a manifest in JSON.
            *args: example arguments of ``build``, abstract or not: the export has their signature.
            platforms: kinds of devices that it shall run on, of ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``; by
                default the present one.
            dynamic_batch: leave the size of dim 0 of all tensor arguments free (local graphs only).
            key: sign the export, for ``load_graph(path, key=key)``: at least 16 secret bytes.
            **kwargs: example arguments by name.

        Returns:
            The directory.

        Raises:
            ExportError: something is not of a kind that can be written, or a file is in the way; nothing is written.

        Example:
            >>> graph.export("classifier", TensorSpec((1, 784)), platforms=["cpu", "tpu"])
        """
        from .export import export

        return export(self, path, args, kwargs, platforms, dynamic_batch, key)


def prepared(graph: Any, args: tuple, kwargs: dict) -> tuple[State, Any]:
    """Return the state and the program of a graph for arguments, or of its last call if there are none."""
    if not args and not kwargs:
        program = graph.program
        last = graph._g.last
        return (State(graph._owners()) if last is None else last.state), program
    leaves, structure = tree.flatten((args, kwargs))
    args, kwargs = tree.unflatten(structure, map(as_tensor, leaves))
    state, _, program = graph._prepared(args, kwargs)
    return state, program
