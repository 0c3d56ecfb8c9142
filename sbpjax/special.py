"""Special functions: the names of ``torch.special``.

>>> flow.special.expit(flow.tensor(0.0))
tensor(0.5000)
"""

from __future__ import annotations

from operator import index as _as_int

from sbpjax.ops import bessel as _bessel
from sbpjax.ops import special as _ops
from sbpjax.ops.polynomials import OPS as _POLYNOMIALS
from sbpjax.tensor import dispatch
from sbpjax.tensor.binding import bind, into_out
from sbpjax.tensor.functions import digamma as digamma
from sbpjax.tensor.functions import digamma as psi  # noqa: F401
from sbpjax.tensor.functions import erf as erf
from sbpjax.tensor.functions import erfc as erfc
from sbpjax.tensor.functions import erfinv as erfinv
from sbpjax.tensor.functions import exp2 as exp2
from sbpjax.tensor.functions import expm1 as expm1
from sbpjax.tensor.functions import lgamma as gammaln  # noqa: F401
from sbpjax.tensor.functions import log1p as log1p
from sbpjax.tensor.functions import log_softmax as _log_softmax
from sbpjax.tensor.functions import logit as logit
from sbpjax.tensor.functions import round as round
from sbpjax.tensor.functions import sigmoid as expit  # noqa: F401
from sbpjax.tensor.functions import sinc as sinc
from sbpjax.tensor.functions import softmax as _softmax
from sbpjax.tensor.functions import xlogy as xlogy
from sbpjax.tensor.op import op_of
from sbpjax.tensor.reductions import logsumexp as logsumexp
from sbpjax.tensor.tensor import Tensor
from sbpjax.tensor.wrong_call import tell as _tell

_UNARY = "entr i0 i0e i1 i1e log_ndtr ndtr ndtri spherical_bessel_j0".split()
entr, i0, i0e, i1, i1e, log_ndtr, ndtr, ndtri, spherical_bessel_j0 = (
    bind(getattr(_ops, name), ("input",)) for name in _UNARY
)
airy_ai, erfcx, bessel_j0, bessel_j1, bessel_y0, bessel_y1, modified_bessel_i0, modified_bessel_i1 = (
    bind(fn, ("input",), name)
    for fn, name in (
        (_bessel.airy_ai, "airy_ai"),
        (_bessel.erfcx, "erfcx"),
        (_bessel.bessel_j0, "bessel_j0"),
        (_bessel.bessel_j1, "bessel_j1"),
        (_bessel.bessel_y0, "bessel_y0"),
        (_bessel.bessel_y1, "bessel_y1"),
        (_ops.i0, "modified_bessel_i0"),
        (_ops.i1, "modified_bessel_i1"),
    )
)
modified_bessel_k0, modified_bessel_k1, scaled_modified_bessel_k0, scaled_modified_bessel_k1 = (
    bind(fn, ("input",) if fn.__name__[0] == "m" else ("x",))
    for fn in (
        _bessel.modified_bessel_k0,
        _bessel.modified_bessel_k1,
        _bessel.scaled_modified_bessel_k0,
        _bessel.scaled_modified_bessel_k1,
    )
)
globals().update({name: bind(fn, ("input", "n"), name) for name, fn in _POLYNOMIALS.items()})
xlog1py = bind(_ops.xlog1py, ("input", "other"))
zeta = bind(_ops.zeta, ("input", "other"))
gammainc = bind(_ops.igamma, ("input", "other"), "gammainc")
gammaincc = bind(_ops.igammac, ("input", "other"), "gammaincc")
multigammaln = bind(_ops.mvlgamma, ("a",), "multigammaln")


def polygamma(n: int, input: Tensor, *, out=None) -> Tensor:
    """Return the n-th derivative of digamma."""
    found = dispatch.run(op_of(_ops.polygamma, (("n", _as_int(n)),)), (input,))
    return found if out is None else into_out(out, found)


def softmax(input: Tensor, dim: int, *, dtype=None) -> Tensor:
    """Return the softmax along a dim."""
    return _softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype=None) -> Tensor:
    """Return the logarithm of the softmax along a dim."""
    return _log_softmax(input, dim, dtype=dtype)


_tell(globals())
