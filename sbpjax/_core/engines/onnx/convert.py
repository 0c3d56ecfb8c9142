"""Converter from StableHLO to ONNX, with some inputs of the program as constants.

model = convert(module, {0: weight, 1: bias}, ["weight", "bias", "x"])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jax.extend.mlir import ir

# Importing them registers their rules.
from . import control as _control  # noqa: F401
from . import elementwise as _elementwise  # noqa: F401
from . import indexing as _indexing  # noqa: F401
from . import products as _products  # noqa: F401
from . import reductions as _reductions  # noqa: F401
from . import shapes as _shapes  # noqa: F401
from .model import TYPES, Graph, Port
from .values import FOLDED, UnsupportedError, Value, Walk, facts

FREE = "batch"


def convert(module: Any, constants: Mapping[int, np.ndarray], names: Sequence[str], outputs: Sequence[str]) -> Any:
    """Return the model of a program.

    Args:
        module: the program, an MLIR module of StableHLO with a function ``main``.
        constants: the inputs that are constants, by their numbers.
        names: names of all inputs.
        outputs: names of the outputs.

    Returns:
        An `onnx.ModelProto`; its inputs are those that are no constants.
    """
    functions = {ir.StringAttr(f.attributes["sym_name"]).value: f.operation for f in module.body.operations}
    graph = Graph()
    walk = Walk(graph, functions)
    operands, inputs = [], []
    for number, argument in enumerate(functions["main"].regions[0].blocks[0].arguments):
        kind, shape = facts(argument)
        if kind not in TYPES:
            raise UnsupportedError("input", f"of type {kind}")
        if number in constants:
            array = constants[number]
            name = graph.constant(array, names[number])
            if array.size <= FOLDED:
                walk.known[name] = array
            operands.append(Value(name, kind, tuple(array.shape), tuple(array.shape)))
        else:
            inputs.append(Port(names[number], kind, tuple(FREE if n is None else n for n in shape)))
            operands.append(Value(names[number], kind, shape, shape))
    found = walk.call("main", operands)
    ports = []
    for value, name in zip(found, outputs, strict=True):
        node = graph.add("Identity", walk.full(value))
        graph.nodes[-1].outputs = (name,)
        assert node != name  # the name is given by the caller, and no node's
        ports.append(
            Port(name, value.kind, tuple(f"{name}_{i}" if n is None else n for i, n in enumerate(value.shape)))
        )
    return graph.model(inputs, ports)
