"""StableHLO values in the ONNX graph, and the walk that converts operations by rules.

StableHLO broadcasts by an operation of its own, and its sums and products take operands of equal shapes. In ONNX they
broadcast by themselves, so a value may stay small: `Value.actual` has its present sizes, `Value.shape` its sizes in the
program.

    %1 = broadcast_in_dim %bias, dims = [2] : tensor<32xf32> -> tensor<2x12x32xf32>     actual (1, 1, 32)
    %2 = add %x, %1                                                                     Add(x, bias), nothing is spread

A size that the program leaves free is None. `Walk` turns operations into nodes by the table `RULES`, which the files
beside this one fill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jax.extend.mlir import ir

from .model import NUMPY, TYPES, Graph, kind_of

if TYPE_CHECKING:
    from .pooling import Part

Shape = tuple[int | None, ...]
FOLDED = 2**14  # elements: results of constants up to this size are constants of the model


class UnsupportedError(Exception):
    """An operation without an ONNX counterpart: its name, and the reason."""

    def __init__(self, op: str, reason: str = "") -> None:
        super().__init__(f"{op}{': ' if reason else ''}{reason}")
        self.op = op


@dataclass(frozen=True)
class Value:
    """One tensor.

    Attributes:
        name: its name in the graph.
        kind: its element type.
        shape: its sizes in the program; None is free.
        actual: the sizes that it has: those, or 1.
        target: the name of a vector with its sizes in the program, if one of them is free and it is smaller.
    """

    name: str
    kind: str
    shape: Shape
    actual: Shape
    target: str | None = None

    @property
    def is_expanded(self) -> bool:
        """Whether it has its sizes in the program."""
        return self.actual == self.shape


def facts(value: Any) -> tuple[str, Shape]:
    """Return the element type and the sizes of a value of a program."""
    kind = ir.RankedTensorType(value.type)
    shape = tuple(None if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank))
    return str(kind.element_type), shape


Rule = Callable[["Walk", Any, list[Value]], "Value | Sequence[Value] | None"]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of operations; without a dialect they are StableHLO's."""

    def enter(function: Rule) -> Rule:
        for name in names:
            RULES[name if "." in name else f"stablehlo.{name}"] = function
        return function

    return enter


class Walk:
    """The conversion of a function's operations into nodes.

    ``values``: the known values of the program; a body of an operation sees those around it.
    """

    def __init__(self, graph: Graph, functions: dict[str, Any], values: dict | None = None) -> None:
        self.graph, self.functions = graph, functions
        self.values: dict[Any, Value] = {} if values is None else dict(values)
        # Of a reduction's result: the same with its reduced dims of size 1, and these dims.
        self.kept: dict[str, tuple[str, tuple[int, ...]]] = {}
        # Of a sum's result: the summed value, its dims, and the number of summands.
        self.sums: dict[str, tuple[str, tuple[int, ...], int | None]] = {}
        self.known: dict[str, np.ndarray] = {}  # constants, by name
        self.parts: dict[str, Part] = {}  # strided parts of one dim, and the largest of several: see `pooling`

    # -- values --------------------------------------------------------------------------------------------------------

    def value_like(self, name: str, like: Any, actual: Shape | None = None, target: str | None = None) -> Value:
        """Return the value of a name, of the type of a program's value."""
        kind, shape = facts(like)
        return Value(name, kind, shape, shape if actual is None else actual, target)

    def constant(self, array: np.ndarray, shape: Shape | None = None) -> Value:
        """Return a constant, which may have a larger shape in the program."""
        if not kind_of(array.dtype):
            raise UnsupportedError("stablehlo.constant", f"of type {array.dtype}")
        name = self.graph.constant(array)
        self.known[name] = array
        return Value(name, kind_of(array.dtype), array.shape if shape is None else shape, array.shape)

    def full(self, value: Value) -> str:
        """Return the name of a value, broadcast to its sizes in the program."""
        if value.is_expanded:
            return value.name
        target = value.target
        if target is None:
            if None in value.shape:
                raise UnsupportedError("stablehlo.broadcast", f"to sizes {value.shape} that nothing states")
            target = self.graph.ints(*value.shape)  # type: ignore[arg-type]
        return self.graph.add("Expand", value.name, target)

    def broadcast_to_type(self, value: Value) -> Value:
        """Return a value, broadcast to its sizes in the program."""
        return value if value.is_expanded else replace(value, name=self.full(value), actual=value.shape, target=None)

    def cast(self, name: str, kind: str) -> str:
        """Return a value in another element type."""
        return self.graph.add("Cast", name, to=TYPES[kind])

    def zero(self, kind: str, value: float = 0) -> str:
        """Return a number of an element type."""
        return self.graph.constant(np.array(value, _numpy(kind)))

    def elementwise_result(self, name: str, like: Any, operands: Sequence[Value]) -> Value:
        """Return the result of an operation that goes element by element through its operands."""
        kind, shape = facts(like)
        actual = []
        for place in range(len(shape)):
            sizes = {v.actual[place] for v in operands} - {1}
            actual.append(1 if not sizes else None if None in sizes else max(sizes))  # type: ignore[type-var]
        # A free size that is known by now was proved equal by the writer of the program.
        targets = [v.target for v in operands if v.target is not None]
        found = tuple(s if a is None else a for a, s in zip(actual, shape))
        found = tuple(None if s is None and a != 1 else a for a, s in zip(found, shape))
        return Value(name, kind, shape, found, None if found == shape else next(iter(targets), None))

    # -- operations ----------------------------------------------------------------------------------------------------

    def run(self, block: Any) -> list[Value]:
        """Convert a block, and return its results."""
        for op in block.operations:
            operation = op.operation
            operands = [self.values[v] for v in operation.operands]
            if operation.name in ("func.return", "stablehlo.return"):
                return operands
            found = RULES.get(operation.name)
            if found is None:
                raise UnsupportedError(operation.name)
            made = found(self, operation, operands)
            made = [] if made is None else [made] if isinstance(made, Value) else list(made)
            for result, value in zip(operation.results, made, strict=True):
                self.values[result] = value
        return []

    def call(self, name: str, operands: Sequence[Value]) -> list[Value]:
        """Convert a function of the program."""
        block = self.functions[name].regions[0].blocks[0]
        for argument, value in zip(block.arguments, operands, strict=True):
            self.values[argument] = value
        return self.run(block)


def _numpy(kind: str) -> np.dtype:
    return np.dtype(NUMPY[kind])


def numbers(attribute: Any) -> list[int]:
    """Return an attribute that is a list of whole numbers."""
    if isinstance(attribute, ir.DenseI64ArrayAttr) or ir.DenseI64ArrayAttr.isinstance(attribute):
        return list(ir.DenseI64ArrayAttr(attribute))
    return [int(n) for n in np.array(ir.DenseIntElementsAttr(attribute)).reshape(-1)]


def number(attribute: Any) -> int:
    """Return an attribute that is a whole number."""
    return ir.IntegerAttr(attribute).value


def array_of(attribute: Any, kind: str, shape: Shape) -> np.ndarray:
    """Return an attribute that is an array; of one number many times only the number, in as many dims."""
    dense = ir.DenseElementsAttr(attribute)
    if dense.is_splat:
        found = dense.get_splat_value()
        text = float(ir.FloatAttr(found).value) if kind.startswith(("f", "bf")) else ir.IntegerAttr(found).value
        if kind == "i1":
            text = bool(text)
        elif not kind.startswith(("f", "bf")):
            text = int(np.array(text).astype(_numpy(kind)))
        return np.full((1,) * len(shape), text, _numpy(kind))
    if kind == "bf16":
        return np.frombuffer(ir.DenseElementsAttr(attribute), np.uint16).view(_numpy(kind)).reshape(shape)  # type: ignore[call-overload]
    if kind == "i1":
        return np.array([bool(n) for n in ir.DenseIntElementsAttr(attribute)]).reshape(shape)  # type: ignore[arg-type]
    return np.array(dense).reshape(shape)  # type: ignore[arg-type]
