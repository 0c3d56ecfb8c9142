"""Builder of ONNX graphs: nodes, constants and names, without unused ones in the model.

    graph = Graph()
    y = graph.add("MatMul", "x", graph.constant(weight, "fc.weight"))
    model = graph.model([Port("x", "f32", ("batch", 8))], [Port(y, "f32", ("batch", 4))])

Nodes that no output needs are left out, and constants that no node needs. A constant that many nodes use is kept once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

OPSET = 18
IR_VERSION = 10
DOMAIN = "sbpjax"

# Element types of StableHLO, and their numbers in ONNX's TensorProto.
TYPES = {
    "f32": 1, "ui8": 2, "i8": 3, "ui16": 4, "i16": 5, "i32": 6, "i64": 7, "i1": 9, "f16": 10, "f64": 11, "ui32": 12,
    "ui64": 13, "bf16": 16,
}  # fmt: skip
NUMPY = {
    "f32": "float32", "ui8": "uint8", "i8": "int8", "ui16": "uint16", "i16": "int16", "i32": "int32", "i64": "int64",
    "i1": "bool", "f16": "float16", "f64": "float64", "ui32": "uint32", "ui64": "uint64", "bf16": "bfloat16",
}  # fmt: skip
_OF_NUMPY = {name: kind for kind, name in NUMPY.items()}


def kind_of(dtype: np.dtype) -> str:
    """Return the element type of an array as StableHLO calls it, empty if ONNX has none."""
    return _OF_NUMPY.get(np.dtype(dtype).name, "")


@dataclass(frozen=True)
class Port:
    """An input or output of a model.

    Attributes:
        name: its name.
        kind: its element type, as StableHLO calls it.
        shape: its sizes; a text is the name of a free size.
    """

    name: str
    kind: str
    shape: tuple[int | str, ...]


@dataclass
class Node:
    """One operation: its name in ONNX, names of its inputs and outputs, its attributes, and the graphs it runs."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    bodies: dict[str, Body] = field(default_factory=dict)


@dataclass
class Body:
    """A graph inside of a node, such as a loop's."""

    graph: Graph
    inputs: list[Port]
    outputs: list[Port]


class Graph:
    """Nodes in the order in which they run.

    Args:
        outside: the graph whose values this one, the body of a node, can read; it keeps the constants of both.
    """

    def __init__(self, outside: Graph | None = None) -> None:
        self.nodes: list[Node] = []
        self._count = [0] if outside is None else outside._count
        self.constants: dict[str, np.ndarray] = {} if outside is None else outside.constants
        self._same: dict[tuple, str] = {} if outside is None else outside._same
        self.makers: dict[str, Node] = {} if outside is None else dict(outside.makers)  # of each value, its node

    def fresh(self, hint: str = "v") -> str:
        """Return a name that nothing has yet."""
        self._count[0] += 1
        return f"{hint}_{self._count[0]}"

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one output, and return the output's name."""
        return self.add_many(op, inputs, 1, **attributes)[0]

    def add_many(self, op: str, inputs: Iterable[str], count: int, **attributes: Any) -> tuple[str, ...]:
        """Add a node, and return the names of its outputs."""
        outputs = tuple(self.fresh(op.lower()) for _ in range(count))
        bodies = {key: attributes.pop(key) for key, value in list(attributes.items()) if isinstance(value, Body)}
        node = Node(op, tuple(inputs), outputs, attributes, bodies)
        self.nodes.append(node)
        self.makers.update(dict.fromkeys(outputs, node))
        return outputs

    def made_by(self, name: str, op: str) -> tuple[str, ...] | None:
        """Return the inputs of the node that makes a value, if it is of a kind; else None."""
        node = self.makers.get(name)
        return node.inputs if node is not None and node.op == op else None

    def constant(self, value: Any, name: str | None = None) -> str:
        """Return the name of a constant; small ones of the same bytes are one."""
        array = np.asarray(value)
        key = (array.dtype.name, array.shape, array.tobytes()) if name is None and array.size <= 64 else None
        if key in self._same:
            return self._same[key]
        name = name if name is not None and name not in self.constants else self.fresh(name or "c")
        self.constants[name] = array
        if key is not None:
            self._same[key] = name
        return name

    def ints(self, *values: int) -> str:
        """Return the name of a vector of whole numbers, as ONNX takes shapes and axes."""
        return self.constant(np.array(values, np.int64))

    # -- needed nodes --------------------------------------------------------------------------------------------------

    def needed_nodes(self, names: Iterable[str]) -> tuple[list[Node], set[str]]:
        """Return the nodes that lead to values, in order, and the names of all that they read."""
        wanted, kept = set(names), []
        for node in reversed(self.nodes):
            if wanted.isdisjoint(node.outputs):
                continue
            kept.append(node)
            wanted.update(name for name in node.inputs if name)
            for body in node.bodies.values():
                wanted |= body.graph.needed_nodes(port.name for port in body.outputs)[1]
        return kept[::-1], wanted

    def model(self, inputs: Sequence[Port], outputs: Sequence[Port], name: str = "graph") -> Any:
        """Return the `onnx.ModelProto`, constants in it."""
        nodes, read = self.needed_nodes(port.name for port in outputs)
        proto = onnx.GraphProto(name=name)
        proto.node.extend(map(_node, nodes))
        proto.input.extend(map(_port, inputs))
        proto.output.extend(map(_port, outputs))
        proto.initializer.extend(_tensor(key, self.constants[key]) for key in sorted(read & self.constants.keys()))
        versions = [onnx.OperatorSetIdProto(domain="", version=OPSET)]
        return onnx.ModelProto(ir_version=IR_VERSION, producer_name=DOMAIN, opset_import=versions, graph=proto)


def _port(port: Port) -> Any:
    return onnx.helper.make_tensor_value_info(port.name, TYPES[port.kind], port.shape)


def _tensor(name: str, array: np.ndarray) -> Any:
    kind = TYPES[kind_of(array.dtype)]
    return onnx.TensorProto(name=name, data_type=kind, dims=array.shape, raw_data=np.ascontiguousarray(array).tobytes())


def _node(node: Node) -> Any:
    proto = onnx.helper.make_node(node.op, node.inputs, node.outputs, name=node.outputs[0], **node.attributes)
    for key, body in node.bodies.items():
        nodes, _ = body.graph.needed_nodes(port.name for port in body.outputs)
        inner = onnx.GraphProto(name=f"{node.outputs[0]}_{key}")
        inner.node.extend(map(_node, nodes))
        inner.input.extend(map(_port, body.inputs))
        inner.output.extend(map(_port, body.outputs))
        proto.attribute.append(onnx.helper.make_attribute(key, inner))
    return proto
