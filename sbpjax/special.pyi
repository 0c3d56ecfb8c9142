"""Written by `make stubs` from the live package; do not edit."""
# Special functions under the names of ``torch.special``; `_core.functions.rows.special` defines them.

import builtins
import sbpjax._core.tensor.handle.types as _types
from sbpjax._core.tensor.handle.tensor import Tensor as _Tensor

def airy_ai(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return Airy's function Ai; NaN at infinity, as torch does."""
def bessel_j0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the Bessel function of the first kind of order 0."""
def bessel_j1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the Bessel function of the first kind of order 1."""
def bessel_y0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the Bessel function of the second kind of order 0: minus infinity at 0, NaN below."""
def bessel_y1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the Bessel function of the second kind of order 1: minus infinity at 0, NaN below."""
def chebyshev_polynomial_t(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='chebyshev_polynomial_t')`."""
def chebyshev_polynomial_u(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='chebyshev_polynomial_u')`."""
def chebyshev_polynomial_v(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='chebyshev_polynomial_v')`."""
def chebyshev_polynomial_w(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='chebyshev_polynomial_w')`."""
def digamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the derivative of lgamma; at 0 it is infinite, with the sign opposite to the zero's."""
def entr(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``-input log(input)``: 0 at 0, minus infinity below."""
def erf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the error function."""
def erfc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return 1 - erf(input)."""
def erfcx(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``exp(input * input) * erfc(input)``, without overflow for large input."""
def erfinv(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse of erf."""
def exp2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return 2**input."""
def expit(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return 1 / (1 + e**-input)."""
def expm1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return e**input - 1, exact near 0."""
def gammainc(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the lower regularized incomplete gamma function; the gradient is that of other."""
def gammaincc(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the upper regularized incomplete gamma function; the gradient is that of other."""
def gammaln(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return log|Γ(input)|."""
def hermite_polynomial_h(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='hermite_polynomial_h')`."""
def hermite_polynomial_he(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='hermite_polynomial_he')`."""
def i0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the modified Bessel function of the first kind of order 0."""
def i0e(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``i0(input) * exp(-|input|)``."""
def i1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the modified Bessel function of the first kind of order 1."""
def i1e(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``i1(input) * exp(-|input|)``."""
def laguerre_polynomial_l(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='laguerre_polynomial_l')`."""
def legendre_polynomial_p(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='legendre_polynomial_p')`."""
def log1p(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return log(1 + input), exact near 0."""
def log_ndtr(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the logarithm of `ndtr`, exact where that is 0."""
def log_softmax(input: _Tensor, dim: builtins.int | None, *, dtype: _types.DTypeLike | None = None) -> _Tensor:
    """Return the logarithm of the softmax along ``dim``, computed without its underflow."""
def logit(input: _Tensor, eps: builtins.float | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return log(input / (1 - input)), with input clamped to [eps, 1 - eps] if ``eps`` is given."""
def logsumexp(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return log(sum(e**input)) over ``dim`` without overflow; integers become float32."""
def modified_bessel_i0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the modified Bessel function of the first kind of order 0."""
def modified_bessel_i1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the modified Bessel function of the first kind of order 1."""
def modified_bessel_k0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the modified Bessel function of the second kind of order 0: infinity at 0, NaN below."""
def modified_bessel_k1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the modified Bessel function of the second kind of order 1: infinity at 0, NaN below."""
def multigammaln(a: _Tensor, p: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
    """Return the logarithm of the multivariate gamma function of dimension ``p``; NaN below its domain."""
def ndtr(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the area under the normal density from minus infinity to input."""
def ndtri(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the input for which `ndtr` gives the input."""
def polygamma(n: builtins.int, input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the n-th derivative of digamma."""
def psi(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the derivative of lgamma; at 0 it is infinite, with the sign opposite to the zero's."""
def round(input: _Tensor, decimals: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return input rounded half to even at ``decimals`` digits; integers stay.

    Args:
        decimals: how many decimals are kept; negative ones round to tens, hundreds, …
    """
def scaled_modified_bessel_k0(x: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``exp(x) * modified_bessel_k0(x)``."""
def scaled_modified_bessel_k1(x: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``exp(x) * modified_bessel_k1(x)``."""
def shifted_chebyshev_polynomial_t(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='shifted_chebyshev_polynomial_t')`."""
def shifted_chebyshev_polynomial_u(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='shifted_chebyshev_polynomial_u')`."""
def shifted_chebyshev_polynomial_v(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='shifted_chebyshev_polynomial_v')`."""
def shifted_chebyshev_polynomial_w(input: _Tensor, n: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the polynomial of `polynomial(input, n, family='shifted_chebyshev_polynomial_w')`."""
def sinc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return sin(πinput) / (πinput), and 1 at 0."""
def softmax(input: _Tensor, dim: builtins.int | None, *, dtype: _types.DTypeLike | None = None) -> _Tensor:
    """Return e**input normalised to sum 1 along ``dim``.

    Args:
        input: floats; any sbp.
        dim: the dim of the classes; by default 1, or 0 of tensors with 0, 1 or 3 dims.
    """
def spherical_bessel_j0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``sin(input) / input``, 1 at 0 and 0 at infinity."""
def xlog1py(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return ``x log(1 + other)``, 0 where input is 0 and other is no NaN."""
def xlogy(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return input * log(other), and 0 where input is 0 and other is not NaN."""
def zeta(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return Hurwitz' zeta function, the sum of ``(k + other) ** -input``; the gradient is that of other."""
