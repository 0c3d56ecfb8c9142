"""Gradients at NaN, infinities, both zeros, ties and kinks, against torch: what its derivative formulas give there."""

import warnings

import jax
import numpy as np
import pytest
import torch
from jax import lax

from sbpjax._core.ops import arithmetic, complex, elementwise, powers
from sbpjax._core.ops.conv.unpool import lp_pool1d
from sbpjax._core.ops.layers import activation
from sbpjax._core.ops.losses import distance, loss, margin_loss
from sbpjax._core.ops.reductions import cumulative, reduce, sort, stats
from sbpjax._core.ops.shapes import gather
from sbpjax._core.ops.slopes import slopes
from sbpjax._core.ops.special import gamma, special
from tests.ops.checker import A, I, case, check, run

INF, NAN = np.inf, np.nan
X = A(NAN, INF, -INF, 0.0, -0.0, 1, -1, 0.5, -0.5, 3, -3, 6, 20, -20)
CORNERS = A(NAN, INF, -INF, 0.0, -0.0, 1, -1, 0.5, 2, -3)
PAIR = tuple(np.ascontiguousarray(v) for v in np.meshgrid(CORNERS, CORNERS, indexing="ij"))
ROWS = np.array(
    [
        [NAN, 1, NAN, 2],
        [1, 1, 0, -1],
        [INF, INF, 1, 2],
        [-INF, -INF, 0, 1],
        [0, 0, 0, 0],
        [0, 2, 3, 0],
        [-0.0, 3, -2, 5],
    ],
    np.float32,
)
F = torch.nn.functional


def _quiet(function):
    """Return a function that does not warn of variances without degrees of freedom."""

    def quiet(*args, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **options)

    return quiet


CASES = [
    case(getattr(activation, n), getattr(F, n), X)
    for n in "relu relu6 hardtanh hardswish hardsigmoid hardshrink softshrink leaky_relu elu selu celu softplus".split()
]
CASES += [case(getattr(elementwise, n), getattr(torch, n), X) for n in "abs rsqrt sqrt logit".split()]
CASES += [
    case(gamma.lgamma, torch.lgamma, X),
    case(gamma.digamma, torch.digamma, X[[0, 1, 3, 4, 5, 7, 8]]),
    case(special.entr, torch.special.entr, X),
]
CASES += [case(elementwise.logit, torch.logit, X, eps=0.1)]
BINARY = "maximum minimum fmax fmin pow remainder fmod xlogy copysign atan2 hypot logaddexp float_power".split()
CASES += [
    case(getattr(powers if n in ("pow", "float_power") else arithmetic, n), getattr(torch, n), *PAIR, tol=1e-5)
    for n in BINARY
]
CASES += [
    case(arithmetic.clamp, torch.clamp, *PAIR),
    case(arithmetic.clamp, torch.clamp, PAIR[0], -1.0, NAN),
    case(arithmetic.clamp, torch.clamp, PAIR[0], None, PAIR[1]),
    case(arithmetic.clamp, torch.clamp, PAIR[0], PAIR[1], PAIR[1] - 1),
    case(arithmetic.clamp, torch.clamp, X, -1.0, 1.0),
    case(arithmetic.lerp, torch.lerp, *PAIR, PAIR[0]),
    case(arithmetic.hypot, torch.hypot, A(1e30, 3e-30), A(1e30, 4e-30)),
    case(powers.rpow_scalar, lambda x, base: torch.pow(base, x), CORNERS, base=0.0),
    case(powers.pow_scalar, torch.pow, CORNERS, exponent=-0.5),
    case(special.xlog1py, torch.special.xlog1py, *PAIR),
    case(special.logaddexp2, torch.logaddexp2, *PAIR, tol=1e-5),
]
CASES += [
    case(getattr(loss, n), getattr(F, n), *PAIR, reduction="none") for n in "l1_loss smooth_l1_loss huber_loss".split()
]
EDGES = np.repeat(A(0, 1, 0.25), 3), np.tile(A(0, 1, 0.5), 3)
CASES += [
    case(loss.binary_cross_entropy, F.binary_cross_entropy, *EDGES, reduction="none"),
    case(margin_loss.multi_margin_loss, F.multi_margin_loss, ROWS, I(7, high=4), reduction="none", const=(1,)),
    case(
        margin_loss.multilabel_margin_loss,
        F.multilabel_margin_loss,
        ROWS,
        np.array([[0, 1, -1, 3]] * 7),
        reduction="none",
        const=(1,),
    ),
]
CASES += [case(getattr(reduce, n), getattr(torch, n), ROWS, dim=1) for n in "amax amin".split()]
CASES += [case(getattr(reduce, n), getattr(torch, n), ROWS[:2]) for n in "max min".split()]
FREEDOM = [(n, c) for n in ("var", "std") for c in (1, 4)]
CASES += [case(getattr(reduce, n), _quiet(getattr(torch, n)), A(1, 2, 2, 5), correction=c) for n, c in FREEDOM]
CASES += [case(reduce.var_mean, torch.var_mean, ROWS[4:], dim=1)]
CASES += [case(reduce.var, _quiet(torch.var), ROWS[5:], dim=1, correction=c) for c in (4, 6)]
CASES += [case(reduce.norm, torch.norm, ROWS[:4], p=p, dim=1) for p in (1, INF, -INF)]
CASES += [case(distance.cdist, torch.cdist, ROWS[:3], ROWS[1:], p=p) for p in (0.0, 1.0)]
FACTORS = np.array([[2, INF, 3], [0, INF, 1], [0, 0, INF], [NAN, 0, 1], [-INF, 2, INF], [1, 2, 3]], np.float32)
CASES += [
    case(f, t, x, dim=1)
    for f, t in ((reduce.prod, torch.prod), (cumulative.cumprod, torch.cumprod))
    for x in (FACTORS, FACTORS[[0, 4, 5]])
]
CASES += [case(reduce.prod, torch.prod, FACTORS[i]) for i in (0, 1, 2)]
LOGS = np.array(
    [[-INF, -INF, 1, 2], [-INF, 1, INF, 2], [1, INF, -INF, 3], [-200, 0, 80, -1e30], [1, NAN, 2, 3]], np.float32
)
CASES += [case(cumulative.logcumsumexp, torch.logcumsumexp, LOGS.astype(np.float32), dim=1)]
CASES += [case(reduce.norm, torch.norm, ROWS, p=p, dim=1) for p in (0.5, 1.5, 3.0)]
CASES += [case(distance.pdist, F.pdist, ROWS[1:], p=p) for p in (0.5, 2.0, 3.0, INF)]
CASES += [case(distance.renorm, torch.renorm, ROWS, p=p, dim=0, maxnorm=2.0) for p in (2.0, 3.0)]
CASES += [case(sort.quantile, torch.quantile, A(1, 2, INF), q=q) for q in (0.0, 0.9, 1.0)]
CASES += [case(stats.trapezoid, torch.trapezoid, ROWS, dim=1)]
CASES += [case(lp_pool1d, F.lp_pool1d, ROWS[None, 1:], norm_type=p, kernel_size=2) for p in (2.0, 3.0, 1.0)]
PLACES, FROM = np.array([0, 0, 2, 2]), A(3, -INF, NAN, 1)
CASES += [
    case(
        gather.scatter_reduce,
        lambda x, index, src, dim, reduce: x.scatter_reduce(dim, index, src, reduce),
        A(INF, 2, 0, 0),
        PLACES,
        source,
        dim=0,
        reduce=r,
        const=(1,),
    )
    for r, source in (("amax", FROM), ("amin", FROM), ("prod", A(3, 1, 2, 0)))
]
# What is broadcast is scaled before its gradient is summed: infinities of both signs make NaN.
ENDLESS, SIGNS = np.array(INF, np.float32), A(-1.1, -0.8, 0.7)
CASES += [
    case(f, t, SIGNS, *factors)
    for f, t in ((arithmetic.addcmul, torch.addcmul), (arithmetic.addcdiv, torch.addcdiv))
    for factors in ((ENDLESS, np.array(0.5, np.float32)), (A(0.0), np.array([[0.0]], np.float32)))
]
CASES += [
    case(arithmetic.lerp, torch.lerp, SIGNS, np.array(2, np.float32), ENDLESS),
    case(arithmetic.hypot, torch.hypot, SIGNS, ENDLESS),
    case(cumulative.cumprod, torch.cumprod, A(0.5, 0, INF)[None], dim=0),
]
POLAR = np.meshgrid(A(NAN, INF, 0, -0.0, 2, -1), A(NAN, INF, 0, 1, -2), indexing="ij")
CASES += [case(complex.polar, torch.polar, *map(np.ascontiguousarray, POLAR))]
test_corners = run(CASES)


def test_a_function_has_the_slopes_it_names_of_any_order():
    @slopes(lambda t, out, x, y: lax.mul(t, lax.mul(y, x)), None)
    def half_square(x, y):
        return lax.mul(y, lax.mul(np.float32(0.5), lax.square(x)))

    x, y = np.float32(3), np.float32(5)
    assert jax.grad(half_square)(x, y) == 15 and jax.grad(jax.grad(half_square))(x, y) == 5
    assert jax.grad(half_square, argnums=1)(x, y) == 0


@pytest.mark.parametrize("shape", [(3, 1), (1, 4), ()])
def test_slopes_of_broadcast_arrays_are_summed(shape):
    x, y = np.arange(12.0, dtype=np.float32).reshape(3, 4) / 5, np.full(shape, 1.2, np.float32)
    check(case(arithmetic.maximum, torch.maximum, x, y))
