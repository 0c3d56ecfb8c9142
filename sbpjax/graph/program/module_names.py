"""Module names in the op names of JAX and XLA.

    jit(body)/shard_map/model/3/transpose(jvp())/dot_general    →    model.3, backward, dot_general

Module calls put their names on the ops that they trace (`sbpjax.graph.name_scope`), JAX and XLA add theirs around:
functions, loops, transformations. `Names` knows the modules of a graph and finds the one that a text names.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_WRAPPED = re.compile(r"^(?:\w+\()+([^()]*)\)+$")  # transpose(jvp(model)) → model


class Place(NamedTuple):
    """The place of an op in a graph.

    Attributes:
        module: the dotted path of the module, an optimizer's name, or ``""``.
        op: the primitive.
        backward: whether it is part of a backward.
    """

    module: str
    op: str
    backward: bool


class Names:
    """The names of a graph's modules and optimizers.

    Args:
        graph: the graph.

    Attributes:
        roots: names of the modules that are attributes of the graph.
        modules: dotted paths of all modules.
        optimizers: class names of the optimizers.
    """

    def __init__(self, graph: Any) -> None:
        own = graph._g
        self.roots = list(own.blocks)
        self.modules = {name for block, m in own.blocks.items() for name, _ in m.named_modules(prefix=block)}
        self.optimizers = {type(entry.optimizer).__name__ for entry in own.optimizers}
        self._known = known = self.modules | self.optimizers
        self._starts = {name[: k + 1] for name in known for k in range(len(name)) if name[k + 1 : k + 2] in (".", "")}

    def place(self, text: str, *, with_op: bool = True) -> Place:
        """Return the place of an op by its name.

        Args:
            text: a name stack, or the ``op_name`` of an HLO instruction.
            with_op: whether its last part is the op.
        """
        parts = [part for part in text.split(";")[0].split("/") if part]
        op = parts.pop() if with_op and parts else ""
        plain = [m.group(1) if (m := _WRAPPED.match(part)) else part for part in parts]
        return Place(self._module(plain), op, any(part.startswith("transpose(") for part in parts))

    def _module(self, parts: list[str]) -> str:
        """Return the longest path of a module that follows from some part on; of several, the last."""
        best = ""
        start = 0
        while start < len(parts):
            path, stop = "", start
            found, end = "", start + 1
            while stop < len(parts):
                if parts[stop]:
                    path = f"{path}.{parts[stop]}" if path else parts[stop]
                    if path not in self._starts:
                        break
                    if path in self._known:
                        found, end = path, stop + 1
                stop += 1
            best, start = found or best, end
        return best
