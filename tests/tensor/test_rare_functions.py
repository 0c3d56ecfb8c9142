"""The less common of PyTorch's functions in their public forms, each script run under both libraries."""

import numpy as np
import pytest
import torch

import sbpjax
from sbpjax.errors import OpError, OpTypeError
from tests.tensor import both

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
V = np.array([0.5, -1.5, 2.0, 0.25], np.float32)
I = np.array([[4, 6], [9, -8]])

SCRIPTS = {
    "in place": lambda m: [
        m.tensor(I).gcd_(m.tensor(6)),
        m.tensor(I).lcm_(m.tensor([2, 3])),
        m.tensor(V).ldexp_(m.tensor(2)),
        m.tensor(X).renorm_(2, 0, 1.0),
        m.tensor(X).put_(m.tensor([0, -1]), m.tensor([9.0, 8.0])),
        m.tensor(X).fill_diagonal_(5),
        m.tensor(V).fix_(),
        m.tensor(V).negative_(),
        m.tensor(V).sgn_(),
        m.tensor(V).i0_(),
        m.tensor(V).greater_(0),
        m.tensor(V).apply_(lambda v: v + 1),
        m.tensor(V).arctan_(),
        m.tensor(V).map_(m.tensor(V), lambda a, b: a * b),
        m.sin_(m.tensor(V)),
        m.ceil_(m.tensor(V)),
        m.tensor(X).index_reduce_(0, m.tensor([0, 0]), m.ones(2, 4), "amax"),
        m.clamp_(m.tensor(V), 0, 1),
        m.tensor(V).abs().polygamma_(1),
        m.fill_(m.tensor(V), 3),
        m.zero_(m.tensor(V)),
    ],
    "numbers and indices": lambda m: [
        f"{m.tensor(3)} {m.tensor(2.5, requires_grad=True)} {m.tensor(2.5):.2f}",
        m.tensor([np.float32(1), 2]),
        m.tensor([np.float64(1)]),
        m.tensor([[np.int32(1)], [2]]),
        m.tensor([np.float16(1), np.float32(2)]),
        m.tensor([m.tensor(1.0, dtype=m.float64), 2]),
        m.Tensor(),
        m.tensor(X)[[[0, 1], [1, 2]]],
        m.tensor(X)[[slice(0, 2), 1]],
        m.tensor(X)[np.array([[0, 1], [1, 2]])],
        m.tensor(V).view(m.float64),
        m.tensor(V).view(m.int16),
        *m.tensor(X).split(split_size=2),
        *m.tensor_split(m.tensor(V), m.tensor([1, 3])),
        *m.tensor_split(m.tensor(V), m.tensor(3)),
        *m.unravel_index(m.tensor([5, 11], dtype=m.int16), (3, 4)),
        m.nn.functional.cosine_embedding_loss(m.tensor(X), m.tensor(X) + 1, m.tensor([1, 0, -1]), reduction="none"),
        m.nn.functional.cross_entropy(m.tensor(X), m.tensor([1, 0, 3], dtype=m.uint8)),
        m.tensor(X).T.expand(2, 4, 3).dim_order(),
    ],
    "lists": lambda m: [
        *m.cartesian_prod(m.tensor([1, 2]), m.tensor([3, 4])),
        m.combinations(m.tensor(V), 3),
        m.tril_indices(3, 4, 1),
        m.triu_indices(3, 4, -1),
        *m.unravel_index(m.tensor([5, 11]), (3, 4)),
        m.block_diag(m.tensor(X), m.tensor(V)),
        *m.dsplit(m.tensor(X).reshape(1, 3, 4), 2),
        *m.split_with_sizes(m.tensor(X), [1, 2]),
        m.range(1, 4),
        m.narrow_copy(m.tensor(X), 1, 0, 2),
        m.diagflat(m.tensor(V), 1),
        m.tensor(X).sum_to_size(1, 4),
        m.vander(m.tensor(V)),
    ],
    "statistics": lambda m: [
        m.cdist(m.tensor(X), m.tensor(X[:2])),
        m.cov(m.tensor(X)),
        m.corrcoef(m.tensor(X)),
        m.trapezoid(m.tensor(X)),
        m.trapz(m.tensor(V), dx=0.5),
        m.cumulative_trapezoid(m.tensor(X), dim=0),
        *m.gradient(m.tensor(X)),
        *m.gradient(m.tensor(V), spacing=(m.tensor([0.0, 1.0, 1.5, 3.0]),)),
        *m.histogram(m.tensor(X), 4),
        *m.histogram(m.tensor(X), 3, range=(-1.0, 1.0), density=True),
        m.nanquantile(m.tensor(X), 0.25, 1),
        m.histogramdd(m.tensor(X[:, :2]), [2, 3]).hist,
        m.dist(m.tensor(X), m.tensor(V), 1),
        m.nanquantile(m.tensor(X), m.tensor([0.25, 0.5])),
        m.norm_except_dim(m.tensor(X), 2, 0),
        m.nuclear_norm(m.tensor(X)),
    ],
    "pairs": lambda m: [
        *m.frexp(m.tensor(V)),
        m.signbit(m.tensor(V)),
        m.nextafter(m.tensor(V), m.tensor(0.0)),
        m.gcd(m.tensor(I), m.tensor(6)),
        m.logaddexp2(m.tensor(V), m.tensor(V)),
        m.polygamma(1, m.tensor(V).abs()),
        m.mvlgamma(m.tensor(V).abs() + 2, 2),
        m.igamma(m.tensor(V).abs(), m.tensor(V).abs()),
        m.vdot(m.tensor(V), m.tensor(V)),
        m.is_same_size(m.ones(2), m.ones(3)),
        m.slice_scatter(m.tensor(X), m.zeros(3, 2), 1, 1, 3),
        m.select_scatter(m.tensor(X), m.zeros(4), 0, 1),
        m.put(m.tensor(X), m.tensor([1]), m.tensor([9.0])),
        m.diagonal_scatter(m.tensor(X), m.zeros(3)),
    ],
    "names": lambda m: [
        m.view_copy(m.tensor(X), (4, 3)),
        m.t_copy(m.tensor(X)),
        *m.unbind_copy(m.tensor(X)),
        m.select_copy(m.tensor(X), 0, 1),
        m.asarray(X, dtype=m.float64),
        m.scalar_tensor(3),
        m.frombuffer(V.tobytes(), dtype=m.float32),
        m.pi,
        m.inf,
        m.constant_pad_nd(m.tensor(V), (1, 2), 7),
        m.is_storage(m.tensor(V).untyped_storage()),
        m.typename(m.tensor(V))[-11:],
        m.conv1d(m.tensor(X)[None], m.ones(2, 3, 2)),
        m.pairwise_distance(m.tensor(X), m.tensor(X) + 1),
        m.get_num_threads() > 0,
        m.tensor(X).cfloat(),
        m.tensor(X).resize_as_(m.tensor(V)),
        m.tensor(X).new_ones(2),
        m.tensor(V).dim_order(),
    ],
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's own: range and index_reduce are old or new there
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_give_what_torch_gives(name):
    for i, (got, want) in enumerate(zip(SCRIPTS[name](sbpjax), SCRIPTS[name](torch), strict=True)):
        if not isinstance(want, torch.Tensor):
            assert got == want, (name, i)
            continue
        assert str(got.dtype)[7:] == str(want.dtype)[6:] and tuple(got.shape) == tuple(want.shape), (name, i)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=2e-6, err_msg=f"{name} {i}")


def test_low_rank():
    a = sbpjax.tensor(X).T @ sbpjax.tensor(X)  # (4, 4) of rank 3
    for found in (sbpjax.svd_lowrank(a, 3), sbpjax.svd_lowrank(a[:3], 3)):
        whole = a[: found.U.shape[0]]
        np.testing.assert_allclose(((found.U * found.S) @ found.V.mH).numpy(), whole.numpy(), atol=1e-4)
    assert sbpjax.pca_lowrank(a).S.shape == torch.pca_lowrank(torch.ones(4, 4))[1].shape
    assert sbpjax.nonzero_static(sbpjax.tensor([0, 1, 0, 2]), size=3).tolist() == [[1], [3], [-1]]
    x = sbpjax.tensor(X)
    out, mean, deviation = sbpjax.native_layer_norm(x, (4,), None, None, 1e-5)
    np.testing.assert_allclose(((x - mean) * deviation).numpy(), out.numpy(), rtol=1e-4, atol=1e-5)
    dropped, kept = sbpjax.native_dropout(sbpjax.ones(1000), 0.25, True)
    assert (dropped.numpy()[kept.numpy()] == np.float32(4 / 3)).all() and 600 < int(kept.sum()) < 900
    assert sbpjax.dropout_(x, 1.0) is x and x.sum() == 0


NORMS = {
    "layer": lambda m, x, w: m.native_layer_norm(x, (4,), w, w, 1e-5),
    "group": lambda m, x, w: m.native_group_norm(x, w, w, 2, 4, 4, 2, 1e-5),
    "batch": lambda m, x, w: m.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5),
    "batch in evaluation": lambda m, x, w: m.native_batch_norm(x, w, w, w, w, False, 0.1, 1e-5),
}


@pytest.mark.parametrize("parameters", ["bfloat16", "float32", None])
@pytest.mark.parametrize("name", NORMS)
def test_statistics_of_16_bits_have_the_dtype_of_the_parameters(name, parameters):
    if parameters is None and name == "batch in evaluation":
        parameters = "bfloat16"  # it has statistics at least

    def outcome(m):
        x = m.tensor(np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)).to(m.bfloat16)
        return NORMS[name](m, x, None if parameters is None else m.ones(4).to(getattr(m, parameters)))

    for got, want in zip(outcome(sbpjax), outcome(torch), strict=True):
        assert str(got.dtype)[7:] == str(want.dtype)[6:] and tuple(got.shape) == tuple(want.shape)
        tolerance = 2**-8 if want.dtype == torch.bfloat16 else 1e-6
        np.testing.assert_allclose(got.float().numpy(), want.float().numpy(), rtol=tolerance, atol=tolerance)


def test_types_by_name():
    x = sbpjax.tensor(V)
    for name in ("DoubleTensor", "LongTensor", "BFloat16Tensor", "BoolTensor", "HalfTensor"):
        want = torch.tensor(V).type(f"torch.{name}").type()
        assert x.type(f"torch.{name}").type() == x.type(name).type() == want.replace("torch", "sbpjax")
    assert x.type(sbpjax.IntTensor).dtype == x.type(sbpjax.int32).dtype == sbpjax.int32


def test_random_counts():
    sbpjax.manual_seed(0)
    n = sbpjax.binomial(sbpjax.full((2000,), 10.0), sbpjax.full((2000,), 0.3))
    assert n.min() >= 0 and n.max() <= 10 and abs(float(n.mean()) - 3) < 0.15
    g = sbpjax.zeros(4000).geometric_(0.25)
    assert g.min() == 1 and abs(float(g.mean()) - 4) < 0.3
    assert abs(float(sbpjax.zeros(4000).log_normal_(0.5, 0.25).log().mean()) - 0.5) < 0.05


def test_settings():
    sbpjax.set_default_tensor_type(sbpjax.DoubleTensor)
    try:
        assert sbpjax.zeros(1).dtype == sbpjax.float64
    finally:
        sbpjax.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(OpTypeError, match="floating-point"):
        sbpjax.set_default_tensor_type(sbpjax.LongTensor)
    with pytest.raises(OpError, match="positive"):
        sbpjax.set_num_threads(0)
    assert repr(sbpjax.strided) == "sbpjax.strided" and isinstance(sbpjax.channels_last, sbpjax.memory_format)


def test_every_late_name_is_there():
    from sbpjax._core.functions.table.table import ROWS

    above = [
        row
        for row in ROWS
        if row.home.startswith(("sbpjax.nn.", "sbpjax._core.tracing.", "sbpjax.graph.", "sbpjax.data."))
    ]
    assert len(above) == 14
    for row in above:
        if row.namespace == "Tensor":
            assert getattr(sbpjax.Tensor, row.name).__wrapped__ is row.resolve()
        else:
            assert getattr(sbpjax, row.name).__wrapped__ is row.resolve() and row.name in dir(sbpjax)


FORMS = """
T.searchsorted(T.tensor([5.0, 1, 3]), T.tensor([2.0, 3, 6]), sorter=T.tensor([1, 2, 0]))
T.diff(x, prepend=x[:, :1], append=x[:, :2])
T.diff(x, 2, 0)
T.norm(x, p="nuc")
T.isin(T.tensor([1, 2, 3]), T.tensor([2]), assume_unique=True, invert=True)
T.repeat_interleave(T.tensor([2, 1]))
T.cross(x[:, :3], x[:, 1:], 1)
T.outer(T.tensor([1, 2]), T.tensor([3.0]))
T.isclose(T.tensor([3 + 4j]), T.tensor([3 + 4.00001j]))
T.rand(2, dtype=T.complex64).dtype
T.tensor([1 + 2j, 3]).cumsum(0)
[T.tensor(True).cumsum_(0), T.tensor(False).cumprod_(0), T.zeros(0, dtype=T.bool).cumprod_(0)]
T.norm(T.tensor([3 + 4j]), 1)
T.exp(T.tensor([1j]))
T.cat([T.tensor([1j]), T.tensor([1.0])])
""".strip().splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_call_forms(form):
    both.same(f"x = T.tensor(np.array({X.tolist()}, np.float32))\nR = {form}", rtol=1e-5)


def test_cross_takes_the_first_dim_of_size_three():
    x = sbpjax.tensor(X)
    assert sbpjax.equal(sbpjax.cross(sbpjax.ones(3, 4), x), sbpjax.linalg.cross(sbpjax.ones(3, 4), x, dim=0))
    assert sbpjax.equal(x[:, :3].cross(x[:, 1:]), sbpjax.linalg.cross(x[:, :3], x[:, 1:], dim=0))


def test_complex_random_numbers_have_variance_one():
    x = sbpjax.randn(4000, dtype=sbpjax.complex64)
    assert abs(float((x.abs() ** 2).mean()) - 1) < 0.08 and abs(complex(x.mean())) < 0.05
