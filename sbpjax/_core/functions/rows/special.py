"""Op table: special functions (``torch.special``) and integer pairs such as `gcd`."""

from __future__ import annotations

from ..table.op_modules import bessel, gamma, pairs, polynomials, special
from ..table.table import FN, INPLACE, INPLACE_FN, METHOD, op

READ = FN | METHOD
WRITE = READ | INPLACE

op("gcd(input, other)", pairs.gcd, WRITE | INPLACE_FN)
op("lcm(input, other)", pairs.lcm, WRITE | INPLACE_FN)
op("nextafter(input, other)", pairs.nextafter, WRITE)
op("ldexp(input, other)", pairs.ldexp, WRITE | INPLACE_FN)
op("signbit(input)", pairs.signbit, READ)
op("frexp(input)", pairs.frexp, READ, result="mantissa exponent")
op("logaddexp2(input, other)", special.logaddexp2, WRITE)
op("igamma(input, other)", gamma.igamma, WRITE)
op("igammac(input, other)", gamma.igammac, WRITE)
op("i0(input)", special.i0, WRITE | INPLACE_FN, also="special.i0")
op("mvlgamma(input, p)", gamma.mvlgamma, WRITE)
op("polygamma(n, input)", gamma.polygamma, FN, also="special.polygamma")
op("Tensor.polygamma(self, n)", gamma.polygamma, FN | INPLACE)
op("special.entr(input)", special.entr)
op("special.i0e(input)", special.i0e)
op("special.i1(input)", special.i1)
op("special.i1e(input)", special.i1e)
op("special.log_ndtr(input)", special.log_ndtr)
op("special.ndtr(input)", special.ndtr)
op("special.ndtri(input)", special.ndtri)
op("special.spherical_bessel_j0(input)", special.spherical_bessel_j0)
op("special.airy_ai(input)", bessel.airy_ai)
op("special.erfcx(input)", bessel.erfcx)
op("special.bessel_j0(input)", bessel.bessel_j0)
op("special.bessel_j1(input)", bessel.bessel_j1)
op("special.bessel_y0(input)", bessel.bessel_y0)
op("special.bessel_y1(input)", bessel.bessel_y1)
op("special.modified_bessel_i0(input)", special.i0)
op("special.modified_bessel_i1(input)", special.i1)
op("special.modified_bessel_k0(input)", bessel.modified_bessel_k0)
op("special.modified_bessel_k1(input)", bessel.modified_bessel_k1)
op("special.scaled_modified_bessel_k0(x)", bessel.scaled_modified_bessel_k0)
op("special.scaled_modified_bessel_k1(x)", bessel.scaled_modified_bessel_k1)
op("special.xlog1py(input, other)", special.xlog1py, numbers="one")
op("special.zeta(input, other)", gamma.zeta, numbers="one")
op("special.gammainc(input, other)", gamma.igamma)
op("special.gammaincc(input, other)", gamma.igammac)
op("special.multigammaln(a, p)", gamma.mvlgamma)
for _name in """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
    legendre_polynomial_p""".split():
    op(f"special.{_name}(input, n)", getattr(polynomials, f"{_name}"), numbers="one")
