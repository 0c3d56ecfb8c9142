"""Batching of requests into a few sizes, to limit the number of compiled programs.

batches = Batches(graph, largest=16)           # 1, 2, 4, 8, 16
batches.warm()
answers = batches([[x of 3 rows], [x of 2 rows]])      # one run of 8 rows, of which 3 are repeated
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import sbpjax as flow

Arrays = list[np.ndarray]


class Batches:
    """A loaded graph as a function of the arrays of several requests.

    Args:
        graph: the result of `sbpjax.load_graph`.
        largest: the largest batch; 0 if its batch has one size.

    Attributes:
        largest: as given.
        sizes: the batch sizes that are compiled: powers of two, and the largest.
    """

    def __init__(self, graph: Any, largest: int):
        self._graph, self.largest = graph, largest
        leaves = graph.manifest["inputs"]["leaves"]
        self._inputs = [leaf for leaf in leaves if "static" not in leaf]
        self._fill = _make_graph_caller(graph.manifest)
        self.sizes = _sizes(largest)

    def warm(self) -> None:
        """Run every size once, so that no request waits for a compiler."""
        for size in self.sizes or [None]:
            arrays = []
            for leaf in self._inputs:
                shape = [size if isinstance(n, str) else n for n in leaf["shape"]]
                arrays.append(np.ones(shape, np.dtype(leaf["dtype"])))
            self._run(arrays)

    def __call__(self, requests: Sequence[Arrays]) -> list[Arrays]:
        """Return the outputs of each request, whose arrays are rows of a batch."""
        if not self.largest:
            return [self._run(arrays) for arrays in requests]
        rows = [arrays[0].shape[0] for arrays in requests]
        total = sum(rows)
        more = next((n for n in self.sizes if n >= total), total) - total
        joined = []
        for parts in zip(*requests, strict=True):
            # An existing row is a valid input; zeros may be invalid.
            parts = [*parts, *[parts[-1][-1:]] * more]
            joined.append(np.concatenate(parts) if len(parts) > 1 else parts[0])
        outputs = self._run(joined)
        answers, start = [], 0
        for n in rows:
            answers.append([out[start : start + n] for out in outputs])
            start += n
        return answers

    def _run(self, arrays: Arrays) -> Arrays:
        if (outputs := self._graph.on_arrays(arrays)) is not None:
            return outputs
        found = self._fill(self._graph, [flow.from_numpy(np.ascontiguousarray(a)) for a in arrays])
        return [t.numpy() for t in tensors_of(found)]


def _sizes(largest: int) -> list[int]:
    if not largest:
        return []
    return [*(1 << i for i in range(largest.bit_length()) if 1 << i < largest), largest]


def _make_graph_caller(manifest: dict) -> Callable[[Any, list], Any]:
    """Return a function that calls a graph with tensors where its arguments have them."""
    args, kwargs = manifest["inputs"]["structure"][1]
    leaves = manifest["inputs"]["leaves"]

    def call(graph: Any, tensors: list) -> Any:
        given = iter(tensors)
        values = iter([_static(leaf) if "static" in leaf else next(given) for leaf in leaves])
        made = [_build_structure(child, values) for child in args[-1]]
        named = (
            {} if kwargs is None else dict(zip(kwargs[1], [_build_structure(child, values) for child in kwargs[-1]]))
        )
        return graph(*made, **named)

    return call


def _static(leaf: dict) -> Any:
    return float(leaf["value"]) if leaf["static"] == "float" else leaf["value"]


def _build_structure(structure: Any, values: Any) -> Any:
    if structure is None:
        return next(values)
    kind, *names, children = structure
    made = [_build_structure(child, values) for child in children]
    if kind in ("dict", "OrderedDict"):
        return dict(zip(names[0], made))
    return tuple(made) if kind == "tuple" else made


def tensors_of(result: Any) -> list:
    """Return the tensors of a result, in the order of the manifest."""
    if isinstance(result, flow.Tensor):
        return [result]
    if isinstance(result, dict):
        result = result.values()
    elif hasattr(result, "__dataclass_fields__"):
        result = [getattr(result, name) for name in result.__dataclass_fields__]
    if isinstance(result, (str, int, float, bool, type(None))):
        return []
    return [tensor for part in result for tensor in tensors_of(part)]
