"""Corners of functions as PyTorch has them: numbers as tensors, no dims, empty indices, ``out=``, slopes of zero.

Each script runs with both libraries, and gives the same values, shapes, dtypes and gradients.
"""

import numpy as np
import pytest
import torch

import sbpjax
from tests.tensor.both import assert_equal, plain

TOLERANCE = 1e-5


def leaf(m, *shape, seed=0):
    """Return normal numbers, drawn from a seed, that require a gradient."""
    return m.tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32), requires_grad=True)


def slopes(m, function, *leaves):
    """Return a result, or several, and the gradients of leaves."""
    result = function(*leaves)
    outs = result if isinstance(result, (list, tuple)) else [result]
    sum((o * (m.arange(o.numel()).reshape(o.shape) + 1)).sum() for o in outs).backward()
    return [result, [x.grad for x in leaves]]


def probabilities(m):
    p = m.tensor([0.0, 1.0], requires_grad=True)
    return slopes(m, m.bernoulli, p)


def into(m, function):
    """Return what a function with ``out=`` returns, and what it wrote."""
    out = m.zeros(0)
    return [function(out), out]


F = np.float32
IMAGE = np.random.default_rng(1).normal(size=(1, 2, 4, 4)).astype(F)
NONE, ONE_EMPTY = np.zeros(0, np.int64), np.zeros((0, 3), np.int64)


def quantiles(name, **options):
    return lambda m: slopes(
        m,
        lambda x, q: getattr(m, name)(x, q, dim=0, **options),
        leaf(m, 7, 3),
        m.tensor([0.1, 0.77], requires_grad=True),
    )


def padded(mode, pad):
    return lambda m: slopes(m, lambda x: m.nn.functional.pad(x, pad, mode), leaf(m, 1, 2, 3, 4))


def losses(reduction):
    def script(m):
        f, zero = m.nn.functional, m.tensor(0)
        return [
            slopes(m, lambda x: f.multi_margin_loss(x, zero, reduction=reduction), leaf(m)),
            slopes(m, lambda x: f.multi_margin_loss(x, m.tensor([1]), reduction=reduction), leaf(m, 3)),
            slopes(m, lambda x: f.multilabel_margin_loss(x, zero, reduction=reduction), leaf(m)),
            slopes(m, lambda x: f.multilabel_margin_loss(x, m.tensor([0]), reduction=reduction), leaf(m)),
            slopes(m, lambda x: f.multilabel_margin_loss(x, m.tensor([2, -1, 0]), reduction=reduction), leaf(m, 3)),
        ]

    return script


def back(n_fft, **options):
    def script(m):
        draw = np.random.default_rng(2)
        parts = [m.tensor(draw.normal(size=(n_fft, 12)).astype(F)) for _ in range(2)]
        found = m.istft(m.complex(*parts), n_fft, window=m.ones(n_fft), **options)
        return m.view_as_real(found) if found.is_complex() else found

    return script


SCRIPTS = {
    "quantile of a tensor": quantiles("quantile"),
    "quantile of a tensor, nearest": quantiles("quantile", interpolation="nearest"),
    "nanquantile of a tensor": quantiles("nanquantile"),
    "quantile in the tensor's precision": lambda m: [
        m.quantile(m.arange(11.0), q, interpolation=i) for q in (0.1, 0.3, 0.7) for i in ("lower", "higher", "nearest")
    ],
    "istft of all frequencies": back(8),
    "istft of all frequencies, said": back(8, onesided=False),
    "istft of a complex signal": back(8, onesided=False, return_complex=True),
    "covariance of one row": lambda m: [
        [m.cov(x), m.corrcoef(x), m.cov(x, correction=0)] for x in (leaf(m, 1, 5), leaf(m, 5))
    ],
    "batch without elements and channels": lambda m: (
        [m.nn.functional.batch_norm(m.zeros(0), m.zeros(0), m.ones(0), training=training) for training in (True, False)]
        + [slopes(m, lambda x: m.nn.functional.batch_norm(x, None, None, training=True), leaf(m, 0))]
    ),
    "sum of a number to a number": lambda m: [
        m.tensor(v).sum_to_size(size) for v, size in ((True, ()), (3, ()), (2.5, ()), ([3], (1,)), ([[1, 2]], ()))
    ],
    "hash": lambda m: (
        [
            [m.hash_tensor(x), x.hash_tensor(0), m.hash_tensor(x, (0, 1), keepdim=True)]
            for x in (m.tensor([[1.5, -2.0], [3, 0]]).to(d) for d in (m.float32, m.float64, m.bfloat16, m.int8, m.bool))
        ]
        + [m.hash_tensor(m.zeros(0, 3), dim=1)]
    ),
    "squeeze of no dims": lambda m: [
        m.ones(1, 2, 1).squeeze(()),
        m.ones(1, 2, 1).squeeze((0,)),
        m.ones(1).squeeze_(()),
    ],
    "all and any of no dims": lambda m: [m.all(leaf(m, 2, 3), dim=()), m.any(m.zeros(2), dim=())],
    "unfold of a number": lambda m: [m.tensor(2.0).unfold(0, 1, 1), m.tensor(2.0).unfold(-1, 0, 3)],
    "no difference": lambda m: [m.diff(m.tensor([3, 1]), n=0, append=m.tensor([5])), m.diff(m.tensor([True]), n=0)],
    "slope of the next float": lambda m: slopes(m, m.nextafter, leaf(m, 2, 3), leaf(m, 3, seed=1)),
    "slope of draws": probabilities,
    "linspace between tensors": lambda m: [
        m.linspace(m.tensor(1), m.tensor(7.0), 4),
        m.linspace(m.tensor(1), 7, 4, dtype=m.int64),
        m.linspace(2.0, m.tensor(7), 0),
        m.logspace(m.tensor(1), m.tensor(3.0), 5, base=2),
        m.view_as_real(m.linspace(m.tensor(1 + 2j), m.tensor(3.0), 5)),
    ],
    "correction None": lambda m: [
        getattr(m, name)(leaf(m, 2, 3), dim=1, correction=None) for name in ("var", "std", "var_mean", "std_mean")
    ],
    "spacing None": lambda m: m.gradient(leaf(m, 4, 3), spacing=None),
    "cosine of numbers": lambda m: [
        slopes(m, lambda x, y, d=d: m.cosine_similarity(x, y, dim=d), leaf(m), leaf(m, seed=1)) for d in (0, -1)
    ],
    "addbmm_ that broadcasts": lambda m: [
        [x.addbmm_(m.ones(2, 3, 5), m.ones(2, 5, 4), beta=2), x] for x in (m.ones(1), m.arange(4.0), m.ones(3, 4))
    ],
    "gather nothing": lambda m: [
        slopes(m, lambda x: m.gather(x, 0, m.tensor(NONE)), leaf(m)),
        slopes(m, lambda x: m.gather(x, 1, m.tensor(NONE.reshape(2, 0))), leaf(m, 2, 3)),
        m.gather(m.ones(2, 3), 0, m.tensor(NONE)),
        m.gather(m.ones(3), 0, m.tensor(NONE.astype(np.uint8))),
        m.gather(m.zeros(0, 3), 0, m.tensor(ONE_EMPTY)),
    ],
    "scatter nothing": lambda m: [
        slopes(m, lambda x: m.scatter(x, 0, m.tensor(NONE), m.zeros(0)), leaf(m, 2, 3)),
        m.scatter_add(m.ones(2, 3), 1, m.tensor(NONE), m.ones(3)),
        m.scatter_reduce(m.ones(2, 3), 0, m.tensor(NONE), m.zeros(0), "sum"),
        m.scatter(m.ones(2, 3), 1, m.tensor(ONE_EMPTY), 1.0),
    ],
    "power of a tensor by name": lambda m: slopes(
        m, lambda x, y: x.__rpow__(y.abs()), leaf(m, 2, 3), leaf(m, 3, seed=1)
    ),
    "out of activations": lambda m: [
        into(m, lambda out: m.nn.functional.gelu(m.tensor(IMAGE), approximate="tanh", out=out)),
        into(m, lambda out: m.nn.functional.logsigmoid(m.tensor(IMAGE), out=out)),
        into(m, lambda out: m.nn.functional.softshrink(m.tensor(IMAGE), 0.2, out=out)),
        into(m, lambda out: m.nn.functional.hardshrink(m.tensor(IMAGE), 0.2, out=out)),
        into(m, lambda out: m.nn.functional.softplus(m.tensor(IMAGE), out=out)),
    ],
    "out of layers": lambda m: [
        into(m, lambda out: m.nn.functional.linear(m.tensor(IMAGE), m.ones(3, 4), out=out)),
        into(m, lambda out: m.nn.functional.avg_pool2d(m.tensor(IMAGE), 2, out=out)),
        into(m, lambda out: m.nn.functional.avg_pool3d(m.tensor(IMAGE), (1, 2, 2), out=out)),
    ],
    "out of copies": lambda m: [
        into(m, lambda out: m.as_strided_copy(m.tensor(IMAGE), (2, 2), (1, 2), out=out)),
        into(m, lambda out: m.narrow_copy(m.tensor(IMAGE), 2, 1, 2, out=out)),
    ],
}
SCRIPTS |= {
    "powers of a number": lambda m: slopes(m, lambda x: m.linalg.vander(x, N=3), leaf(m)),
    "tensorsolve of moved dims": lambda m: slopes(
        m, lambda a, b: m.linalg.tensorsolve(a, b, dims=(0, 2)), leaf(m, 2, 3, 6), leaf(m, 2, 3, seed=1)
    ),
    "slopes of residuals": lambda m: slopes(
        m, lambda a, b: m.linalg.lstsq(a, b, driver="gels").residuals, leaf(m, 5, 3), leaf(m, 5, 2, seed=1)
    ),
    "slopes of normal draws": lambda m: [
        slopes(m, lambda a, b: m.normal(a, b.abs()) * 0.0, leaf(m, 3), leaf(m, 3)),
        [m.normal(leaf(m, 3), 1.0).requires_grad, m.linalg.lstsq(leaf(m, 2, 3), leaf(m, 2, 3)).residuals.requires_grad],
    ],
}
BOOLS, FLIPPED = np.array([True, False, False, True]), np.array([False, True, False, True])
FACTORS = {"beta": 2j, "alpha": 1 + 0.5j}


def products(m, *shapes_and_names):
    """Return the add-products of complex tensors with complex factors, and their gradients."""
    found = []
    for name, *shapes in shapes_and_names:
        parts = [m.complex(leaf(m, *s, seed=i).detach(), leaf(m, *s, seed=9).detach()) for i, s in enumerate(shapes)]
        leaves = [p.requires_grad_() for p in parts]
        result = getattr(m, name)(*leaves, **FACTORS)
        m.view_as_real(result).sum().backward()
        inplace = m.view_as_real(
            getattr(parts[0].detach().clone(), name + "_")(*[p.detach() for p in parts[1:]], **FACTORS)
        )
        found += [m.view_as_real(result), inplace, *[m.view_as_real(x.grad) for x in leaves]]
    return found


SCRIPTS |= {
    "what of a least-squares solution has a slope": lambda m: [
        [x.requires_grad for x in m.linalg.lstsq(leaf(m, 5, 3), leaf(m, 5, 2, seed=1), driver=driver)]
        for driver in (None, "gels", "gelsy", "gelsd", "gelss")
    ],
    "sums of bools": lambda m: [
        [
            x.scatter_add(0, at, y),
            x.clone().scatter_add_(0, at, y),
            x.scatter_reduce(0, at, y, "sum"),
            x.scatter_reduce(0, at, y, "prod"),
            x.scatter_reduce(0, at, y, "sum", include_self=False),
            x.scatter_reduce(0, at, y, "amax", include_self=False),
            x.scatter_reduce(0, at, y, "amin", include_self=False),
            x.scatter(0, at, y, reduce="add"),
            x.scatter(0, at, y, reduce="multiply"),
            x.scatter(0, at, True, reduce="add"),
            x.clone().put_(at, y, accumulate=True),
            x.index_put((at,), y, accumulate=True),
            *[x.index_add(0, at, y, alpha=alpha) for alpha in (1, 0, True, False, 2)],
            m.ldexp(x, y),
            m.ldexp(m.tensor([3, 1, 2, 0]), y),
        ]
        for x, y, at in [(m.tensor(BOOLS), m.tensor(FLIPPED), m.tensor([0, 1, 1, 2]))]
    ],
    "outer product added to bools": lambda m: [
        m.addr(m.eye(4, dtype=m.bool), m.tensor(BOOLS), m.tensor(FLIPPED), beta=beta, alpha=alpha)
        for beta, alpha in ((1, 1), (0, 1), (1, 0), (True, False), (0, 0), (2, 3))
    ],
    "complex factors of products": lambda m: products(
        m,
        ("addmm", (2, 4), (2, 3), (3, 4)),
        ("addmv", (2,), (2, 3), (3,)),
        ("addr", (2, 4), (2,), (4,)),
        ("baddbmm", (5, 2, 4), (5, 2, 3), (5, 3, 4)),
        ("addbmm", (2, 4), (5, 2, 3), (5, 3, 4)),
    ),
    "complex factor of slices": lambda m: m.view_as_real(
        m.index_add(m.zeros(3) + 1j, 0, m.tensor([0, 2, 0]), m.ones(3) + 0j, alpha=1 + 2j)
    ),
}
SCRIPTS |= {f"margin losses of numbers, {r}": losses(r) for r in ("none", "mean", "sum")}
SCRIPTS |= {
    f"pad {mode} {pad}": padded(mode, pad)
    for mode in ("reflect", "replicate")
    for pad in ((-3, 2, 0, 0), (2, -5, 0, 0), (-3, 2, -2, 1), (1, -2, 2, -2))
}
SCRIPTS |= {f"pad circular {pad}": padded("circular", pad) for pad in ((-2, 2, 0, 0), (2, -2, -1, 1), (-1, -2, 0, 0))}
SCRIPTS |= {f"pad replicate {pad}": padded("replicate", pad) for pad in ((-4, 5, 0, 0), (0, 0, 4, -3), (-5, 6, 0, 0))}


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
@pytest.mark.parametrize("name", SCRIPTS)
def test_corner_is_as_in_pytorch(name):
    assert_equal(plain(SCRIPTS[name](sbpjax)), plain(SCRIPTS[name](torch)), TOLERANCE, TOLERANCE)


MADE = {
    "zeros": (3,), "ones": (3,), "full": ((3,), 2), "arange": (1, 4), "linspace": (0, 4, 5), "logspace": (0, 1, 4),
    "eye": (3,), "range": (1, 4),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:torch.range")
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bfloat16"])
def test_what_makes_a_tensor_makes_it_in_the_dtype_of_out(name, dtype):
    def made(m):
        out = m.zeros(0, dtype=getattr(m, dtype))
        return [getattr(m, name)(*MADE[name], out=out), out]

    assert_equal(plain(made(sbpjax)), plain(made(torch)), 0, 0)
    other = sbpjax.float16
    with pytest.raises(RuntimeError, match="dtype of out"):
        getattr(sbpjax, name)(*MADE[name], dtype=other, out=sbpjax.zeros(2, dtype=getattr(sbpjax, dtype)))


DRAWS = {"rand": (3,), "randn": (3,), "randint": (0, 9, (3,)), "randperm": (3,), "normal": (0.0, 1.0, (3,))}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_go_into_out_in_its_dtype(name):
    for dtype in (sbpjax.float64, sbpjax.float32):
        out = sbpjax.full((2,), -7, dtype=dtype)
        sbpjax.manual_seed(3)
        assert getattr(sbpjax, name)(*DRAWS[name], out=out) is out
        sbpjax.manual_seed(3)
        assert out.shape == (3,) and out.equal(getattr(sbpjax, name)(*DRAWS[name], dtype=dtype))


def test_draws_by_probabilities_go_into_out():
    out = sbpjax.zeros(2, dtype=sbpjax.float64)
    assert sbpjax.bernoulli(sbpjax.ones(3), out=out) is out and out.tolist() == [1.0, 1.0, 1.0]
    out = sbpjax.zeros(0, dtype=sbpjax.int64)
    assert sbpjax.multinomial(sbpjax.tensor([0.0, 1.0]), 1, out=out) is out and out.tolist() == [1]


@pytest.mark.parametrize("name, shapes", [("addmm", [(2, 2)] * 3), ("addr", [(2, 2), (2,), (2,)])])
def test_complex_factor_of_real_tensors_is_refused(name, shapes):
    for dtype in (sbpjax.float32, sbpjax.int64):
        with pytest.raises(RuntimeError, match="without overflow"):
            getattr(sbpjax, name)(*[sbpjax.ones(*s, dtype=dtype) for s in shapes], alpha=1j)
    with pytest.raises(RuntimeError, match="without overflow"):
        sbpjax.index_add(sbpjax.ones(2), 0, sbpjax.tensor([0]), sbpjax.ones(1), alpha=1j)


@pytest.mark.parametrize("sbp", [sbpjax.sbp.split(0), sbpjax.sbp.broadcast])
def test_sums_of_global_bools_are_those_of_local_ones(sbp):
    place = sbpjax.placement("cpu", [0, 1])
    x, y = (sbpjax.tensor(v).to_global(place, sbp) for v in (BOOLS, FLIPPED))
    at = sbpjax.tensor([0, 1, 1, 1]).to_global(place, sbp)
    wide = (BOOLS[:, None] & FLIPPED) | np.eye(4, dtype=bool)
    np.testing.assert_array_equal(x.scatter_add(0, at, y).numpy(), [True, True, False, True])
    np.testing.assert_array_equal(x.index_add(0, at, y).numpy(), [True, True, False, True])
    np.testing.assert_array_equal(x.put(at, y, accumulate=True).numpy(), [True, True, False, True])
    eye = sbpjax.eye(4, dtype=sbpjax.bool).to_global(place, sbp)
    np.testing.assert_array_equal(sbpjax.addr(eye, x, y).numpy(), wide)


@pytest.mark.parametrize(
    "pad, mode", [((-4, 0), "reflect"), ((-2, -2), "replicate"), ((-4, 4), "circular"), ((-3, 2), "circular")]
)
def test_pad_that_leaves_nothing_to_take_from_is_refused(pad, mode):
    with pytest.raises(RuntimeError):
        sbpjax.nn.functional.pad(leaf(sbpjax, 1, 2, 4), pad, mode)


def test_lbfgs_leaves_a_rate_that_is_a_tensor():
    rate, w = sbpjax.tensor(0.5), sbpjax.tensor([1.0, 2.0], requires_grad=True)
    optimizer = sbpjax.optim.LBFGS([w], lr=rate)

    def closure():
        optimizer.zero_grad()
        loss = (w**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert rate.item() == 0.5


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("interpolation", ["linear", "higher"])
def test_quantile_in_a_program_is_that_outside(name, interpolation):
    x = leaf(sbpjax, 5, 3).detach()
    x[0, 1] = float("nan")
    for q in (sbpjax.tensor([0.1, 0.6]), sbpjax.tensor(0.3)):
        wanted = getattr(sbpjax, name)(x, q, 0, interpolation=interpolation)
        found = sbpjax.compile(lambda x, q: getattr(sbpjax, name)(x, q, 0, interpolation=interpolation))(x, q)
        assert_equal(plain(found), plain(wanted), TOLERANCE, TOLERANCE)


def test_lu_takes_its_options_by_position():
    x = sbpjax.tensor(np.random.default_rng(0).normal(size=(3, 3)))
    found, wanted = sbpjax.lu(x, True, True), torch.linalg.lu_factor_ex(torch.tensor(x.numpy()))
    assert len(sbpjax.lu(x, True, False)) == 2
    assert_equal(plain(list(found)), plain(list(wanted)), TOLERANCE, TOLERANCE)


def test_out_by_position_in_oneflows_order():
    out = sbpjax.zeros(0)
    x = sbpjax.tensor([1.0, 2.0, 4.0])
    assert sbpjax.quantile(x, 0.5, 0, False, "linear", out) is out and out.item() == 2.0
