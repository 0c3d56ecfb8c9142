"""What a graph says of itself: ``repr`` before and after it was built, and `debug` while it is."""

from __future__ import annotations

from typing import Any


class Debug:
    """What a graph prints while programs are made."""

    def __init__(self) -> None:
        self.level = -1
        self.modules: dict[str, int] = {}

    def set(self, level: int, ranks: Any, depth: int, only_user: bool, with_stack: bool) -> None:
        """Set what `Graph.debug` asks for."""
        self.level = level

    def set_module(self, name: str, level: int, ranks: Any) -> None:
        """Set what `GraphModule.debug` asks for."""
        self.modules[name] = level

    def traced(self, graph: Any, program: Any) -> None:
        """Print what a trace found."""

    def compiled(self, graph: Any, program: Any) -> None:
        """Print what a compilation took."""


def text(graph: Any) -> str:
    """Return the text of a graph."""
    return f"(GRAPH:{graph.name}:{type(graph).__name__})"
