"""Conversion of elementwise operations, constants and iota to ONNX."""

from __future__ import annotations

import numpy as np

from .model import TYPES
from .patterns import is_masked_already, is_relu, softmax
from .pooling import match_pooling
from .values import FOLDED, UnsupportedError, Value, Walk, _numpy, array_of, facts, number, rule

# Operations that are one node of ONNX.
_SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow", "tanh": "Tanh",
    "exponential": "Exp", "log": "Log", "sqrt": "Sqrt", "negate": "Neg", "abs": "Abs", "sign": "Sign",
    "floor": "Floor", "ceil": "Ceil", "cosine": "Cos", "sine": "Sin", "tan": "Tan", "logistic": "Sigmoid",
    "maximum": "Max", "minimum": "Min", "round_nearest_even": "Round", "chlo.erf": "Erf", "chlo.asin": "Asin",
    "chlo.acos": "Acos", "chlo.sinh": "Sinh", "chlo.cosh": "Cosh", "chlo.tan": "Tan", "chlo.asinh": "Asinh",
    "chlo.acosh": "Acosh", "chlo.atanh": "Atanh", "chlo.atan": "Atan",
}  # fmt: skip
_LOGIC = {"and": ("And", "BitwiseAnd"), "or": ("Or", "BitwiseOr"), "xor": ("Xor", "BitwiseXor")}
_MOST_KNOWN = 2**20  # elements
_COMPARED = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
_ORDER = {"EQ": "Equal", "LT": "Less", "LE": "LessOrEqual", "GT": "Greater", "GE": "GreaterOrEqual"}


@rule(*_SAME)
def single_node(walk: Walk, op, operands):
    """Convert to one node of the same meaning."""
    name = op.name.removeprefix("stablehlo.")
    if (constant := _fold_constant(walk, name, op, operands)) is not None:
        return constant
    if name == "divide" and (mean := _mean(walk, operands)) is not None:
        return mean
    if name == "divide" and (found := softmax(walk, *operands)) is not None:
        return walk.elementwise_result(found, op.results[0], operands[:1])
    if operands[0].kind == "i1" and name in ("add", "multiply", "maximum", "minimum"):
        both = "And" if name in ("multiply", "minimum") else "Or"
        return _add_node(walk, op, operands, both)
    if name == "divide" and not operands[0].kind.startswith(("f", "bf")) and operands[0].kind.startswith("u") is False:
        # Whole numbers: both round towards zero.
        return _add_node(walk, op, operands, "Div")
    return _add_node(walk, op, operands, _SAME[name])


def _add_node(walk: Walk, op, operands, node: str, **attributes):
    name = walk.graph.add(node, *(v.name for v in operands), **attributes)
    return walk.elementwise_result(name, op.results[0], operands)


# The scale of a norm in inference is a constant; OpenVINO computes in float32 around a root that it has to take.
_FOLDS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "sqrt": np.sqrt}
_FOLDS["rsqrt"] = lambda x: 1 / np.sqrt(x)


def _fold_constant(walk: Walk, name: str, op, operands) -> Value | None:
    """Return the result of an operation on known floats, None if one is not known."""
    arrays = [walk.known.get(v.name) for v in operands]
    if operands[0].kind != "f32" or any(a is None for a in arrays) or any(v.target for v in operands):
        return None
    if name not in _FOLDS:
        return None
    with np.errstate(all="ignore"):
        made = _FOLDS[name](*arrays)
    if made.size > FOLDED:
        return None
    return walk.elementwise_result(walk.constant(made.astype(np.float32)).name, op.results[0], operands)


def _mean(walk: Walk, operands) -> Value | None:
    """Return a sum that is divided by the number of its summands: engines know norms by their means."""
    total, count = operands
    found = walk.sums.get(total.name)
    divisor = walk.known.get(count.name)
    if found is None or divisor is None or divisor.size != 1 or divisor.reshape(()) != found[2]:
        return None
    source, axes, _ = found
    kept = walk.graph.add("ReduceMean", source, walk.graph.ints(*axes), keepdims=1)
    name = walk.graph.add("Squeeze", kept, walk.graph.ints(*axes))
    walk.kept[name] = kept, axes
    return Value(name, total.kind, total.shape, total.actual, total.target)


@rule("and", "or", "xor")
def logic(walk: Walk, op, operands):
    """Convert a logical operation of bools, or of bits."""
    node = _LOGIC[op.name.removeprefix("stablehlo.")][operands[0].kind != "i1"]
    return _add_node(walk, op, operands, node)


@rule("not")
def negation(walk: Walk, op, operands):
    """Convert a negation of bools, or of bits."""
    return _add_node(walk, op, operands, "Not" if operands[0].kind == "i1" else "BitwiseNot")


@rule("rsqrt")
def reciprocal_root(walk: Walk, op, operands):
    """Convert ``1 / sqrt(x)``."""
    if (constant := _fold_constant(walk, "rsqrt", op, operands)) is not None:
        return constant
    root = walk.graph.add("Sqrt", operands[0].name)
    return walk.elementwise_result(walk.graph.add("Div", walk.zero(operands[0].kind, 1), root), op.results[0], operands)


@rule("chlo.square")
def square(walk: Walk, op, operands):
    """Convert the square of x."""
    return walk.elementwise_result(walk.graph.add("Mul", operands[0].name, operands[0].name), op.results[0], operands)


@rule("exponential_minus_one")
def expm1(walk: Walk, op, operands):
    """Convert ``exp(x) - 1``; near 0, where that loses its digits, ``tanh(x / 2) (exp(x) + 1)``, which is the same."""
    x, one = operands[0], walk.zero(operands[0].kind, 1)
    half = walk.graph.add("Tanh", walk.graph.add("Mul", x.name, walk.zero(x.kind, 0.5)))
    power = walk.graph.add("Exp", x.name)
    near = walk.graph.add("Mul", half, walk.graph.add("Add", power, one))
    is_near = walk.graph.add("Less", walk.graph.add("Abs", x.name), one)
    far = walk.graph.add("Sub", power, one)
    return walk.elementwise_result(walk.graph.add("Where", is_near, near, far), op.results[0], operands)


@rule("log_plus_one")
def log1p(walk: Walk, op, operands):
    """Convert ``log(1 + x)``; where ``u = 1 + x`` is not 1 its lost digits are restored: ``log(u) x / (u - 1)``."""
    x, one = operands[0], walk.zero(operands[0].kind, 1)
    u = walk.graph.add("Add", x.name, one)
    log, rest = walk.graph.add("Log", u), walk.graph.add("Sub", u, one)
    none = walk.graph.add("Equal", rest, walk.zero(x.kind))
    safe = walk.graph.add("Where", none, one, rest)
    exact = walk.graph.add("Div", walk.graph.add("Mul", log, x.name), safe)
    large = walk.graph.add("Greater", x.name, walk.zero(x.kind, 1e4))  # infinity times infinity by infinity is NaN
    found = walk.graph.add("Where", large, log, walk.graph.add("Where", none, x.name, exact))
    return walk.elementwise_result(found, op.results[0], operands)


@rule("cbrt")
def cube_root(walk: Walk, op, operands):
    """Convert the cube root, also of negative numbers."""
    x = operands[0]
    size = walk.graph.add("Pow", walk.graph.add("Abs", x.name), walk.zero(x.kind, 1 / 3))
    return walk.elementwise_result(walk.graph.add("Mul", walk.graph.add("Sign", x.name), size), op.results[0], operands)


@rule("atan2")
def angle(walk: Walk, op, operands):
    """Convert the angle of a point `(y, x)`: that of ``y / x``, plus half a turn for negative x; 0 at the origin."""
    y, x = operands
    divisor = walk.known.get(x.name)
    if divisor is not None and np.all(divisor == 1):
        return walk.elementwise_result(walk.graph.add("Atan", y.name), op.results[0], operands)
    add, zero = walk.graph.add, walk.zero(x.kind)
    up = add("Less", y.name, zero)
    half = add("Where", up, walk.zero(x.kind, -np.pi), walk.zero(x.kind, np.pi))
    found = add("Atan", add("Div", y.name, x.name))
    found = add("Where", add("Less", x.name, zero), add("Add", found, half), found)
    # On the axis the sign of 0 would decide, which engines do not keep.
    upright = add("Mul", add("Sign", y.name), walk.zero(x.kind, np.pi / 2))
    return walk.elementwise_result(add("Where", add("Equal", x.name, zero), upright, found), op.results[0], operands)


@rule("is_finite")
def is_finite(walk: Walk, op, operands):
    """Convert the test for finite numbers, which differ from themselves by 0."""
    x = operands[0]
    zero = walk.graph.add("Sub", x.name, x.name)
    return walk.elementwise_result(walk.graph.add("Equal", zero, walk.zero(x.kind)), op.results[0], operands)


@rule("remainder")
def remainder(walk: Walk, op, operands):
    """Convert the remainder of a division, with the sign of the dividend."""
    return _add_node(walk, op, operands, "Mod", fmod=1)


@rule("clamp")
def clamp(walk: Walk, op, operands):
    """Convert a clamp between two limits, which broadcast: numbers among tensors are 0-d."""
    low, x, high = operands
    found = walk.graph.add("Min", walk.graph.add("Max", x.name, low.name), high.name)
    same = [v for v in operands if len(v.shape) == len(x.shape)]
    return walk.elementwise_result(found, op.results[0], same)


@rule("compare")
def compare(walk: Walk, op, operands):
    """Convert a comparison; of known numbers, such as positions, the result is a constant."""
    order = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    found = [walk.known.get(v.name) for v in operands]
    if found[0] is not None and found[1] is not None and all(v.target is None for v in operands):
        made = _COMPARED[order](*found)
        if made.size <= _MOST_KNOWN:
            return Value(walk.constant(made).name, "i1", operands[0].shape, made.shape)
    if order == "NE":
        if operands[0].kind == "i1":
            return _add_node(walk, op, operands, "Xor")
        equal = walk.graph.add("Equal", *(v.name for v in operands))
        return walk.elementwise_result(walk.graph.add("Not", equal), op.results[0], operands)
    names = [v.name for v in operands]
    if operands[0].kind == "i1" and order != "EQ":
        names = [walk.cast(name, "i32") for name in names]
    return walk.elementwise_result(walk.graph.add(_ORDER[order], *names), op.results[0], operands)


@rule("select")
def select(walk: Walk, op, operands):
    """Convert a selection by a mask, which may be one bool."""
    if is_masked_already(walk, *operands):
        return operands[1]
    if is_relu(walk, *operands):
        return walk.elementwise_result(walk.graph.add("Relu", operands[2].name), op.results[0], operands[2:])
    if (name := match_pooling(walk, *operands)) is not None:
        return walk.value_like(name, op.results[0])
    name = walk.graph.add("Where", *(v.name for v in operands))
    same = [v for v in operands if len(v.shape) == len(facts(op.results[0])[1])]
    return walk.elementwise_result(name, op.results[0], same)


@rule("convert")
def convert(walk: Walk, op, operands):
    """Convert a cast to another element type."""
    x, (kind, _) = operands[0], facts(op.results[0])
    if x.kind == kind:
        return x
    if kind not in TYPES:
        raise UnsupportedError(op.name, f"to {kind}")
    value = walk.known.get(x.name)
    if value is not None and value.size <= 64:
        made = walk.constant(value.astype(_numpy(kind)))
        return Value(made.name, kind, x.shape, x.actual, x.target)
    return walk.elementwise_result(walk.cast(x.name, kind), op.results[0], operands)


@rule("constant")
def constant(walk: Walk, op, operands):
    """Convert the constants of the program."""
    kind, shape = facts(op.results[0])
    if kind not in TYPES:
        raise UnsupportedError(op.name, f"of type {kind}")
    return walk.constant(array_of(op.attributes["value"], kind, shape), shape)


@rule("iota")
def iota(walk: Walk, op, operands):
    """Convert an iota along a dim; its other dims stay of size 1."""
    kind, shape = facts(op.results[0])
    dim = number(op.attributes["iota_dimension"])
    sizes = [1] * len(shape)
    sizes[dim] = shape[dim]  # type: ignore[call-overload]
    return walk.constant(np.arange(shape[dim]).astype(_numpy(kind)).reshape(sizes), shape)


@rule("optimization_barrier")
def barrier(walk: Walk, op, operands):
    """Pass the same values."""
    return operands
