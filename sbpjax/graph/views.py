"""What a graph shows and gives away, as methods: what it moves, where its time goes, and itself as files.

Every method takes the arguments of ``build``, with or without data, or none for the program of the last call.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import tree
from .capture import State
from .signature import as_tensor


class Views:
    """The base of `sbpjax.graph.Graph` that has these methods."""

    def export(
        self,
        path: str | os.PathLike,
        *args: Any,
        platforms: Sequence[str] | None = None,
        dynamic_batch: bool = False,
        **kwargs: Any,
    ) -> Path:
        """Write the graph as files that `sbpjax.load_graph` runs without the code of the model.

        Args:
            path: the directory to write: a StableHLO program, the weights as safetensors, and a manifest in JSON.
            *args: example arguments of ``build``, abstract or not: the export has their signature.
            platforms: kinds of devices that it shall run on, of ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``; by
                default the present one.
            dynamic_batch: leave the size of dim 0 of all tensor arguments free (local graphs only).
            **kwargs: example arguments by name.

        Returns:
            The directory.

        Raises:
            ExportError: something is not of a kind that can be written, or a file is in the way; nothing is written.

        Example:
            >>> graph.export("classifier", TensorSpec((1, 784)), platforms=["cpu", "tpu"])
        """
        from .export import export

        return export(self, path, args, kwargs, platforms, dynamic_batch)


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
