"""Ops of two or three tensors (or numbers) that broadcast."""

from __future__ import annotations

from tests.op_specs.engine import op, same
from tests.support.generate import Dtype, call


def _second(g, x, kinds: str, numbers=(2, -3, 2.5, True), **options):
    how = g.pick("tensor", "other dtype", "number")
    if how == "number":
        return g.pick(*numbers)
    return g.like(x, kinds if how == "other dtype" else None, **options)


def _binary(
    names: str, kinds: str = "fhi", special: bool = True, numbers=(2, -3, 2.5, True), limits=None, **options
) -> None:
    @op(names, **options)
    def make(g):
        x = g.tensor(kinds=kinds, special=special, max_dim=4, **(limits or {}))
        return call(x, _second(g, x, kinds, numbers, **(limits or {})))


_binary("mul", "fhibc")
_binary("eq ne", "fhibc")
_binary("lt le gt ge", "fhib")
_binary("remainder fmod floor_divide", "fi", special=False, limits={"low": 1, "high": 6}, numbers=(2, 2.5))
_binary("float_power", "fi", special=False, limits={"low": 1, "high": 4}, numbers=(2, 0.5, -1))
_binary("xlogy", "fi", special=False, limits={"low": 1, "high": 6}, numbers=(2, 2.5))
_binary("copysign", "fi", numbers=(2, -3.0))


def _tensors(names: str, kinds: str = "fhi", special: bool = True, mixed: bool = True, **options) -> None:
    @op(names, **options)
    def make(g):
        x = g.tensor(kinds=kinds, special=special, max_dim=4)
        return call(x, g.like(x, kinds if mixed and g.flag() else None, special=special))


_tensors("maximum minimum", "fhib")
_tensors("fmax fmin", "fhib")
_tensors("atan2", "fi")
_tensors("hypot logaddexp", "f", mixed=False, special=False)
_tensors("logical_and logical_or logical_xor", "fibc")
_tensors("bitwise_and bitwise_or bitwise_xor", "ib", special=False)
_tensors("heaviside", "f", mixed=False)


def _bounded(names: str, kinds: str, low: float, high: float, **options) -> None:
    @op(names, **options)
    def make(g):
        x = g.tensor(kinds=kinds, low=low, high=high, max_dim=3)
        return call(x, g.like(x, low=low, high=high))


_bounded("gcd lcm", "i", 1, 9)
_bounded("ldexp", "f", -2.0, 2.0)
_bounded("logaddexp2", "f", -3.0, 3.0)
_bounded("nextafter", "f", -3.0, 3.0, grad=False)
same("greater", of="gt")
same("greater_equal", of="ge")
same("less", of="lt")
same("less_equal", of="le")
same("not_equal", of="ne")
same("multiply", of="mul")
same("arctan2", of="atan2")


@op("bitwise_left_shift bitwise_right_shift")
def _(g):
    x = g.tensor(kinds="i", low=0, high=9)
    return call(x, g.pick(g.tensor(x.shape, x.dtype, low=0, high=3), 2))


@op("add sub")
def _(g):
    x = g.tensor(kinds="fhic", special=True)
    return call(x, _second(g, x, "fhic"), **({"alpha": g.pick(2, -1)} if g.flag() else {}))


same("subtract", of="sub")


@op("rsub")
def _(g):
    x = g.tensor(kinds="fi", max_dim=4)
    return call(x, _second(g, x, "fi"), **({"alpha": 2} if g.flag() else {}))


@op("div")
def _(g):
    x = g.tensor(kinds="fhi", max_dim=4)
    y = _second(g, x, "fi", numbers=(2, -3, 2.5), low=1, high=6)
    return call(x, y, **({"rounding_mode": g.pick("trunc", "floor")} if g.flag() else {}))


same("divide", of="div")


@op("true_divide")
def _(g):
    x = g.tensor(kinds="fi", special=True)
    return call(x, _second(g, x, "f"))


@op("pow")
def _(g):
    x = g.tensor(kinds="fi", max_dim=3, low=g.pick(1, None), high=5)
    how = g.pick("number", "tensor", "base")
    if how == "base":
        return call(g.pick(2, 0.5, 3.0), x)
    if how == "number":
        return call(x, g.pick(2, 3, 0.5, 0, 1, 2.0) if x.dtype[0] == "f" else g.pick(2, 3, 0, 2.5))
    return call(x, g.like(x, low=0, high=4))


@op("isclose")
def _(g):
    x = g.tensor(kinds="f", special=True)
    return call(x, g.like(x, special=True), **g.maybe(rtol=0.5, atol=0.3, equal_nan=True))


@op("allclose", layouts=True)
def _(g):
    x = g.tensor(kinds="f", special=True)
    return call(x, g.pick(x, g.tensor(x.shape, x.dtype)), **g.maybe(rtol=0.5, atol=0.3, equal_nan=True))


@op("equal")
def _(g):
    x = g.tensor(kinds="fib")
    return call(x, g.pick(x, g.tensor(x.shape, x.dtype), g.tensor((7,), x.dtype)))


@op("lerp")
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    return call(x, g.like(x), g.pick(0.25, 0.75, g.like(x)))


@op("addcmul")
def _(g):
    x = g.tensor(kinds="fhi", max_dim=3)
    return call(x, g.like(x), g.like(x), **({"value": g.pick(2, -1)} if g.flag() else {}))


@op("addcdiv")
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    return call(x, g.like(x), g.like(x, low=1, high=4), **({"value": g.pick(2, 0.5)} if g.flag() else {}))


@op("clamp")
def _(g):
    x = g.tensor(kinds="fhi", special=True, max_dim=4)
    low, high = g.pick((-1, 1), (None, 1), (0.5, None), (2, -2), (-0.5, 1.5))
    if g.flag():
        return call(x, None if low is None else g.like(x), None if high is None else g.like(x))
    return call(x, **{k: v for k, v in (("min", low), ("max", high)) if v is not None})


same("clip", of="clamp")


@op("clamp_min clamp_max")
def _(g):
    x = g.tensor(kinds="fhi", special=True, max_dim=4)
    return call(x, g.pick(0, 0.5, g.like(x)))


@op("where")
def _(g):
    x = g.tensor(kinds="fhib", special=True, max_dim=4)
    condition = g.tensor(x.shape, "bool")
    return call(condition, *g.pick((x, g.like(x)), (x, 1.5), (0, x), (x, g.like(x, "fi"))))


@op("result_type")
def _(g):
    x = g.tensor(kinds="fhibc")
    return call(x, _second(g, x, "fhibc"))


@op("promote_types can_cast")
def _(g):
    from tests.support.generate import ANY_DTYPE

    return call(Dtype(g.pick(*ANY_DTYPE)), Dtype(g.pick(*ANY_DTYPE)))
