"""Op table: special functions (``torch.special``) and integer pairs such as `gcd`."""

from __future__ import annotations

from ..table.table import FN, INPLACE, INPLACE_FN, METHOD, op

READ = FN | METHOD
WRITE = READ | INPLACE

op("gcd(input, other)", "special.pairs.gcd", WRITE | INPLACE_FN)
op("lcm(input, other)", "special.pairs.lcm", WRITE | INPLACE_FN)
op("nextafter(input, other)", "special.pairs.nextafter", WRITE)
op("ldexp(input, other)", "special.pairs.ldexp", WRITE | INPLACE_FN)
op("signbit(input)", "special.pairs.signbit", READ)
op("frexp(input)", "special.pairs.frexp", READ, result="mantissa exponent")
op("logaddexp2(input, other)", "special.special.logaddexp2", WRITE)
op("igamma(input, other)", "special.gamma.igamma", WRITE)
op("igammac(input, other)", "special.gamma.igammac", WRITE)
op("i0(input)", "special.special.i0", WRITE | INPLACE_FN, also="special.i0")
op("mvlgamma(input, p)", "special.gamma.mvlgamma", WRITE)
op("polygamma(n, input)", "special.gamma.polygamma", FN, also="special.polygamma")
op("Tensor.polygamma(self, n)", "special.gamma.polygamma", FN | INPLACE)
op("special.entr(input)", "special.special.entr")
op("special.i0e(input)", "special.special.i0e")
op("special.i1(input)", "special.special.i1")
op("special.i1e(input)", "special.special.i1e")
op("special.log_ndtr(input)", "special.special.log_ndtr")
op("special.ndtr(input)", "special.special.ndtr")
op("special.ndtri(input)", "special.special.ndtri")
op("special.spherical_bessel_j0(input)", "special.special.spherical_bessel_j0")
op("special.airy_ai(input)", "special.bessel.airy_ai")
op("special.erfcx(input)", "special.bessel.erfcx")
op("special.bessel_j0(input)", "special.bessel.bessel_j0")
op("special.bessel_j1(input)", "special.bessel.bessel_j1")
op("special.bessel_y0(input)", "special.bessel.bessel_y0")
op("special.bessel_y1(input)", "special.bessel.bessel_y1")
op("special.modified_bessel_i0(input)", "special.special.i0")
op("special.modified_bessel_i1(input)", "special.special.i1")
op("special.modified_bessel_k0(input)", "special.bessel.modified_bessel_k0")
op("special.modified_bessel_k1(input)", "special.bessel.modified_bessel_k1")
op("special.scaled_modified_bessel_k0(x)", "special.bessel.scaled_modified_bessel_k0")
op("special.scaled_modified_bessel_k1(x)", "special.bessel.scaled_modified_bessel_k1")
op("special.xlog1py(input, other)", "special.special.xlog1py", numbers="one")
op("special.zeta(input, other)", "special.gamma.zeta", numbers="one")
op("special.gammainc(input, other)", "special.gamma.igamma")
op("special.gammaincc(input, other)", "special.gamma.igammac")
op("special.multigammaln(a, p)", "special.gamma.mvlgamma")
for _name in """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
    legendre_polynomial_p""".split():
    op(f"special.{_name}(input, n)", f"special.polynomials.{_name}", numbers="one")
