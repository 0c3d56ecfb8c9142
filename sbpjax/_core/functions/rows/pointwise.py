"""Op table: elementwise ops (unary, binary, comparisons, complex). Any sbp; linear ones keep a partial sum."""

from __future__ import annotations

from ..table.op_modules import arithmetic, compare, complex_ops, elementwise, gamma, powers
from ..table.table import FN, INPLACE, INPLACE_FN, METHOD, OUTPUT, custom, note, op

FUNCTIONS = "sbpjax._core.functions.elementwise"
COMPLEX = "sbpjax._core.functions.complex_numbers"
READ = FN | METHOD
WRITE = READ | INPLACE
ALL = WRITE | INPLACE_FN

# ---------------------------------------------------------------------------------------------------------- one tensor

op("exp(input)", elementwise.exp, ALL, saves=OUTPUT, amp="accelerator:float32")
op("exp2(input)", elementwise.exp2, ALL, also="special.exp2", saves=OUTPUT)
op("expm1(input)", elementwise.expm1, ALL, also="special.expm1", saves=OUTPUT, amp="accelerator:float32")
op("log(input)", elementwise.log, ALL, amp="accelerator:float32")
op("log1p(input)", elementwise.log1p, ALL, also="special.log1p", amp="accelerator:float32")
op("log2(input)", elementwise.log2, ALL, amp="accelerator:float32")
op("log10(input)", elementwise.log10, ALL, amp="accelerator:float32")
op("sqrt(input)", elementwise.sqrt, ALL, saves=OUTPUT)
op("rsqrt(input)", elementwise.rsqrt, ALL, saves=OUTPUT, amp="accelerator:float32")
op("sin(input)", elementwise.sin, ALL)
op("cos(input)", elementwise.cos, ALL)
op("tan(input)", elementwise.tan, ALL, saves=OUTPUT, amp="accelerator:float32")
op("asin(input)", elementwise.asin, ALL, also="arcsin", amp="accelerator:float32")
op("acos(input)", elementwise.acos, ALL, also="arccos", amp="accelerator:float32")
op("atan(input)", elementwise.atan, ALL, also="arctan")
op("sinh(input)", elementwise.sinh, ALL, amp="accelerator:float32")
op("cosh(input)", elementwise.cosh, ALL, amp="accelerator:float32")
op("tanh(input)", elementwise.tanh, ALL, saves=OUTPUT)
op("asinh(input)", elementwise.asinh, ALL, also="arcsinh")
op("acosh(input)", elementwise.acosh, ALL, also="arccosh")
op("atanh(input)", elementwise.atanh, ALL, also="arctanh")
op("sigmoid(input)", elementwise.sigmoid, ALL, also="special.expit", saves=OUTPUT)
op("erf(input)", elementwise.erf, ALL, also="special.erf")
op("erfc(input)", elementwise.erfc, ALL, also="special.erfc")
op("erfinv(input)", elementwise.erfinv, ALL, also="special.erfinv", amp="accelerator:float32")
op("lgamma(input)", gamma.lgamma, WRITE, also="special.gammaln")
op("digamma(input)", gamma.digamma, WRITE, also="special.digamma special.psi")
op("reciprocal(input)", elementwise.reciprocal, ALL, saves=OUTPUT, amp="accelerator:float32")
op("neg(input)", elementwise.neg, ALL, also="negative")
op("positive(input)", elementwise.positive, WRITE)
op("abs(input)", elementwise.abs, ALL, also="absolute")
op("square(input)", elementwise.square, ALL)
op("sign(input)", elementwise.sign, WRITE)
op("floor(input)", elementwise.floor, ALL)
op("ceil(input)", elementwise.ceil, ALL)
op("trunc(input)", elementwise.trunc, ALL, also="fix")
op("round(input, decimals=0)", elementwise.round, ALL, also="special.round")
op("frac(input)", elementwise.frac, ALL)
op("isnan(input)", elementwise.isnan, READ)
op("isfinite(input)", elementwise.isfinite, READ)
op("isinf(input)", elementwise.isinf, READ)
op("isposinf(input)", elementwise.isposinf, READ)
op("isneginf(input)", elementwise.isneginf, READ)
op("nan_to_num(input, nan=0.0, posinf=None, neginf=None)", elementwise.nan_to_num, ALL)
op("logit(input, eps=None)", elementwise.logit, ALL, also="special.logit")
op("sinc(input)", elementwise.sinc, ALL, also="special.sinc")
op("deg2rad(input)", elementwise.deg2rad, ALL)
op("rad2deg(input)", elementwise.rad2deg, ALL)
op("logical_not(input)", elementwise.logical_not, WRITE)
op("bitwise_not(input)", elementwise.bitwise_not, WRITE)

# --------------------------------------------------------------------------------------------------------- two tensors

custom("add", FUNCTIONS, READ, also="_C.add")
op("add(input, other, *, alpha=1)", arithmetic.add, INPLACE | INPLACE_FN, numbers="all")
op("sub(input, other, *, alpha=1)", arithmetic.sub, ALL, also="subtract", inplace=FN, numbers="all")
op("rsub(input, other, *, alpha=1)", arithmetic.rsub, READ, out=False, numbers="other")
op("mul(input, other)", arithmetic.mul, ALL, also="multiply", numbers="all")
op(
    "div(input, other, *, rounding_mode=None)",
    arithmetic.div,
    ALL,
    check="check_rounded_divisor",
    also="divide true_divide",
    numbers="all",
)
custom("pow", FUNCTIONS, READ, amp="accelerator:float32")
custom("Tensor.pow_", FUNCTIONS)
note("pow_scalar rpow_scalar", amp="accelerator:float32")  # the ops of ``x ** 2`` and ``2 ** x``
op("floor_divide(input, other)", arithmetic.floor_divide, WRITE, check="check_divisor", numbers="all")
op("remainder(input, other)", arithmetic.remainder, WRITE, check="check_divisor", numbers="one")
op("fmod(input, other)", arithmetic.fmod, WRITE, check="check_divisor", numbers="other")
op("maximum(input, other)", arithmetic.maximum, WRITE)
op("minimum(input, other)", arithmetic.minimum, WRITE)
op("fmax(input, other)", arithmetic.fmax, WRITE)
op("fmin(input, other)", arithmetic.fmin, WRITE)
op("clamp(input, min=None, max=None)", arithmetic.clamp, ALL, also="clip", check="check_clamp_bounds")
op("clamp_min(input, min)", arithmetic.clamp_min, ALL, check="check_lower_bound", numbers="other")
op("clamp_max(input, max)", arithmetic.clamp_max, ALL, check="check_upper_bound", names={"min": "max"}, numbers="other")
op("atan2(input, other)", arithmetic.atan2, WRITE, also="arctan2", amp="accelerator:widest")
op("hypot(input, other)", arithmetic.hypot, WRITE)
op("logaddexp(input, other)", arithmetic.logaddexp, WRITE, names={"y": "other"})
op("xlogy(input, other)", arithmetic.xlogy, ALL, also="special.xlogy", numbers="one")
op("copysign(input, other)", arithmetic.copysign, WRITE, numbers="other")
op("heaviside(input, values)", arithmetic.heaviside, WRITE)
op("float_power(input, other)", powers.float_power, READ, names={"exponent": "other"}, numbers="one")
custom("Tensor.float_power_", FUNCTIONS)
custom("where", FUNCTIONS, names={"x": "input", "y": "other"}, amp="accelerator:widest")
custom("Tensor.where", FUNCTIONS, own="where_method")
op("lerp(input, end, weight)", arithmetic.lerp, ALL)
op("addcmul(input, tensor1, tensor2, *, value=1)", arithmetic.addcmul, WRITE, amp="accelerator:widest")
op("addcdiv(input, tensor1, tensor2, *, value=1)", arithmetic.addcdiv, WRITE, amp="accelerator:widest")

# --------------------------------------------------------------------------------------------------------- comparisons

op("eq(input, other)", compare.eq, WRITE, numbers="other")
op("ne(input, other)", compare.ne, WRITE, also="not_equal", numbers="other")
op("lt(input, other)", compare.lt, WRITE, also="less", numbers="other")
op("le(input, other)", compare.le, WRITE, also="less_equal", numbers="other")
op("gt(input, other)", compare.gt, ALL, also="greater", numbers="other")
op("ge(input, other)", compare.ge, WRITE, also="greater_equal", numbers="other")
op("isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False)", compare.isclose, READ, check="check_tolerances")
op("logical_and(input, other)", compare.logical_and, WRITE, numbers="other")
op("logical_or(input, other)", compare.logical_or, WRITE, numbers="other")
op("logical_xor(input, other)", compare.logical_xor, WRITE, numbers="other")
op("bitwise_and(input, other)", compare.bitwise_and, WRITE, numbers="one")
op("bitwise_or(input, other)", compare.bitwise_or, WRITE, numbers="one")
op("bitwise_xor(input, other)", compare.bitwise_xor, WRITE, numbers="one")
op("bitwise_left_shift(input, other)", compare.bitwise_left_shift, WRITE, numbers="one")
op("bitwise_right_shift(input, other)", compare.bitwise_right_shift, WRITE, numbers="one")
custom("allclose equal", FUNCTIONS, READ)

# ------------------------------------------------------------------------------------------------------ complex numbers

op("angle(input)", complex_ops.angle, READ)
op("sgn(input)", complex_ops.sgn, READ | INPLACE)
op("conj_physical(input)", complex_ops.conj, READ | INPLACE)
op("isreal(input)", complex_ops.isreal, READ, out=False)
op("complex(real, imag)", complex_ops.complex, exact_out=True)
op("polar(abs, angle)", complex_ops.polar, exact_out=True)
custom("conj is_conj is_neg resolve_conj resolve_neg", COMPLEX, READ)
custom("real imag view_as_real view_as_complex", COMPLEX)
