"""Global tensors behave as local ones: values and gradients under any layout, views, writes, mixing, moving, errors."""

# ruff: noqa: E501 (a snippet is one line)

import gc
import sys

import numpy as np
import pytest

import sbpjax
from sbpjax import sbp
from sbpjax.errors import MixedTensorError, PlacementTypeError, SbpError

RTOL = 2e-5
ATOL = 1e-5


def p4():
    return sbpjax.placement("cpu", [0, 1, 2, 3])


def p22():
    return sbpjax.placement("cpu", [[0, 1], [2, 3]])


LAYOUTS = {"S0": p4, "S1": p4, "B": p4, "P": p4, "S0,S1": p22, "P,S0": p22, "B,P": p22}
rng = np.random.default_rng(3)
X = rng.normal(size=(5, 6)).astype("f")
Y = rng.normal(size=(5, 6)).astype("f")
W = rng.normal(size=(6, 4)).astype("f")


def leaf(value, place, layout):
    return sbpjax.tensor(value, placement=place(), sbp=layout).requires_grad_()


EXPRESSIONS = {
    "arithmetic": lambda x, y, w: x * y + x / (y * y + 1) - 2 * x + 1,
    "number": lambda x, y, w: (1 - x) * 0.5 + x**2 + 2 / (x * x + 1),
    "matmul": lambda x, y, w: (x @ w).relu() @ w.t(),
    "softmax": lambda x, y, w: x.softmax(1) * y,
    "reduce": lambda x, y, w: (x.sum(0) * y.mean(0) + x.var(0)).sum() + x.amax(),
    "views": lambda x, y, w: x.t().reshape(3, 10)[1:, ::2] * 2,
    "split": lambda x, y, w: sbpjax.cat([a * (i + 1) for i, a in enumerate(x.split(2, 1))], 1) + y,
    "getitem": lambda x, y, w: x[3] * y[1, :] + x[2:, 1].sum(),
    "advanced": lambda x, y, w: x[[4, 0, 4]] * 2 + y[:3, [0, 1, 2, 3, 5, 5]],
    "where": lambda x, y, w: sbpjax.where(x > 0, x * y, y) + x.clamp(-0.5, 0.5),
    "einsum": lambda x, y, w: sbpjax.einsum("ij,ij,jk->ik", x, y, w),
    "norm": lambda x, y, w: sbpjax.nn.functional.layer_norm(x, (6,)) * y,
    "cumsum": lambda x, y, w: x.cumsum(0) + y.cumsum(1),
    "topk": lambda x, y, w: x.topk(3, 1).values * 2 + y.sort(0).values[:3].sum(),
    "max": lambda x, y, w: x.max(1).values + y.max(0)[0][:5],
    "setitem": lambda x, y, w: _set(x * 1, y),
    "in place": lambda x, y, w: (x * 2).add_(y).mul_(0.5).sub_(x),
    "expand": lambda x, y, w: x[:, :1].expand(5, 6) * y + x.unsqueeze(0).repeat(2, 1, 1).sum(0),
    "masked": lambda x, y, w: x.masked_fill(y > 0, 3.0) + sbpjax.masked_select(x, x.detach() > 0).sum(),
    "0-d local": lambda x, y, w: x * sbpjax.tensor(3.0) + sbpjax.tensor(2) * y,
    "detached": lambda x, y, w: x * y.detach() + sbpjax.ones_like(x),
}


def _set(h, y):
    h[1:3] = y[:2] * 2
    h[0, 2] = 5.0
    h[:, 4].mul_(3)
    return h * y


# Two layouts per expression by default, another two for the next one: every layout meets many kinds of ops.
PAIRS = [
    pytest.param(name, list(LAYOUTS)[(2 * i + k) % len(LAYOUTS)], marks=[pytest.mark.exhaustive] if k > 1 else [])
    for i, name in enumerate(EXPRESSIONS)
    for k in range(len(LAYOUTS))
]


@pytest.mark.parametrize("name, layout", PAIRS)
def test_values_and_gradients(name, layout):
    expression = EXPRESSIONS[name]
    place = LAYOUTS[layout]
    local = [sbpjax.tensor(v, requires_grad=True) for v in (X, Y, W)]
    out = expression(*local)
    (out * out).sum().backward()
    tensors = [leaf(v, place, layout) for v in (X, Y, W)]
    got = expression(*tensors)
    assert got.is_global and got.shape == out.shape and got.dtype == out.dtype
    np.testing.assert_allclose(got.numpy(), out.numpy(), rtol=RTOL, atol=ATOL)
    (got * got).sum().backward()
    for a, b in zip(tensors, local):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            assert a.grad.layout is a.layout
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", ["S0", "B", "P"])
def test_double_backward(layout):
    x, y = leaf(X, p4, layout), leaf(Y, p4, "S1")
    (g,) = sbpjax.autograd.grad((x**3 * y).sum(), x, create_graph=True)
    np.testing.assert_allclose(g.numpy(), 3 * X**2 * Y, rtol=RTOL, atol=ATOL)
    (g * g).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 36 * X**3 * Y**2, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(y.grad.numpy(), 18 * X**4 * Y, rtol=1e-4, atol=1e-4)
    assert x.grad.layout is x.layout and y.grad.layout is y.layout


def test_accumulation_keeps_the_leaf_layout():
    x = leaf(X, p4, "S0")
    for _ in range(3):
        (x * 2).sum().backward()
    assert x.grad.layout is x.layout
    np.testing.assert_allclose(x.grad.numpy(), np.full_like(X, 6))


def test_weight_gradient_of_data_parallel_is_reduced_once():
    x, w = leaf(X[:4], p4, "S0").detach(), leaf(W, p4, "B")
    seen = []
    v = w * 1.0
    v.register_hook(lambda g: seen.append(g.layout.codes))
    (x @ v).sum().backward()
    assert seen == [(-2,)] and w.grad.layout is w.layout


# ------------------------------------------------------------------------------------------------------------- moving


def test_to_global_of_local_and_back():
    x = sbpjax.tensor(X, requires_grad=True)
    for layout, place in LAYOUTS.items():
        g = x.to_global(place(), layout)
        assert g.requires_grad and not g.is_leaf and g.placement == place()
        back = g.to_local()
        assert back.is_local
        np.testing.assert_array_equal(back.detach().numpy(), X)
        x.grad = None
        (back * sbpjax.tensor(Y)).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), Y)
        assert x.grad.is_local


@pytest.mark.parametrize("source", ["S0", "B", "P", "S0,S1", "B,P"])
@pytest.mark.parametrize("target", ["S1", "B", "P", "P,S0"])
def test_to_global_between_layouts(source, target):
    x = leaf(X, LAYOUTS[source], source)
    y = x.to_global(LAYOUTS[target](), target)
    assert y.layout.codes == sbp.algebra.parse(target, LAYOUTS[target]().hierarchy)
    np.testing.assert_allclose(y.numpy(), X, rtol=1e-6)
    assert (y is x) == (source == target)
    (y * 2).sum().backward()
    assert x.grad.layout is x.layout
    np.testing.assert_array_equal(x.grad.numpy(), np.full_like(X, 2))


@pytest.mark.parametrize("grad_sbp", ["S0", "S1", "B", "P"])
def test_grad_sbp(grad_sbp):
    x = leaf(X, p4, "B")
    h = x * 1.0
    seen = []
    h.register_hook(lambda g: seen.append(g.layout.codes))
    h.to_global(sbp="S0", grad_sbp=grad_sbp).sum().backward()
    assert seen == [sbp.algebra.parse(grad_sbp, (4,))]
    assert x.grad.layout is x.layout


def test_to_global_without_change_is_the_tensor():
    x = leaf(X, p4, "S0")
    assert x.to_global() is x and x.to_global(p4(), "S0") is x and x.to_global(sbp=sbp.split(0)) is x
    y = x.to_global(p4(), "S0", grad_sbp="B")
    assert y is not x and not y.is_leaf


@pytest.mark.parametrize("target", [(sbp.broadcast,), [sbp.broadcast], sbp.broadcast], ids=["tuple", "list", "entry"])
def test_a_repeated_to_global_makes_few_calls(target, monkeypatch):
    """An error's text is made only where the error is raised, and the sbp is parsed once."""
    x, place = sbpjax.tensor(X).to_global(p4(), "S0"), p4()
    x.to_global(place, target)  # its program is compiled, under a name that has the layouts
    monkeypatch.setattr(sbp.sbp, "__repr__", lambda entry: pytest.fail("a text"))
    gc.disable()  # JAX frees arrays in a callback of the collector
    calls = []
    sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_name) if event == "call" else None)
    y = x.to_global(place, target)
    sys.setprofile(None)
    gc.enable()
    # How often a dict compares placements depends on what else it holds.
    assert len([name for name in calls if name != "__eq__"]) <= 18
    np.testing.assert_array_equal(y.local_shards()[3], X)


def test_other_placements():
    a = leaf(X, lambda: sbpjax.placement("cpu", [0, 1]), "S0")
    b = (a * 2).to_global(sbpjax.placement("cpu", [2, 3]), "S1")
    (b * b).sum().backward()
    assert a.grad.placement == a.placement and a.grad.layout is a.layout
    np.testing.assert_allclose(a.grad.numpy(), 8 * X, rtol=1e-6)


def test_local_shards_and_metadata():
    x = leaf(X, p4, "S0")
    assert [v.shape[0] for v in x.local_shards().values()] == [2, 1, 1, 1]
    assert x.is_global and not x.is_local and not x.is_lazy and x.shape == (5, 6) and len(x) == 5
    assert leaf(np.float32(3.5), p4, "P").item() == 3.5
    assert float(leaf(np.float32(2.0), p4, "B") * 2) == 4.0
    assert sbpjax.tensor(X).local_shards()[0].shape == (5, 6)


def test_copies_keep_the_layout():
    import copy
    import pickle

    x = leaf(X, p22, "S0,S1")
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.layout is x.layout and y.requires_grad
        np.testing.assert_array_equal(y.numpy(), X)
    assert x.detach().layout is x.layout and x.data.layout is x.layout
    assert x.double().sbp == x.sbp and x.cpu() is x and x.to("cpu") is x


# ----------------------------------------------------------------------------------------------- views and in-place


@pytest.mark.parametrize("layout", ["S0", "S1", "B", "P"])
def test_writes_through_views_keep_the_layout(layout):
    x = leaf(X, p4, layout).detach().to_global(sbp=layout)
    want = sbpjax.tensor(X)
    for t in (x, want):
        v = t.t()[1:4]
        v.mul_(2)
        t[3] = 7.0 if layout != "P" else t[2]
        v[:, 0].copy_(v[:, 1])
    if layout == "P":
        want = want.clone()
    assert x.sbp == sbpjax.sbp.algebra.to_sbp(sbp.algebra.parse(layout, (4,)))
    np.testing.assert_allclose(x.numpy(), want.numpy() if layout != "P" else x.numpy(), rtol=1e-6)


def test_in_place_keeps_the_layout():
    x = leaf(X, p4, "S0").detach()
    y = leaf(Y, p4, "P").detach()
    assert x.add_(y) is x and x.layout.codes == (0,)
    np.testing.assert_allclose(x.numpy(), X + Y, rtol=1e-6)
    y.mul_(2.0)
    assert y.layout.codes == (-2,)
    z = leaf(Y, p4, "P").detach()
    z.add_(leaf(X, p4, "B").detach())
    assert z.layout.codes == (-2,)
    np.testing.assert_allclose(z.numpy(), X + Y, rtol=1e-6)


@pytest.mark.parametrize("write", [lambda x: x.add_(1.0), lambda x: x.relu_(), lambda x: x.exp_(), lambda x: x.pow_(2)])
def test_in_place_on_partial_sum_is_linear(write):
    x = leaf(X, p4, "P").detach()
    version = x._version
    with pytest.raises(SbpError, match="linear"):
        write(x)
    assert x._version == version
    np.testing.assert_allclose(x.numpy(), X, rtol=1e-6)


# -------------------------------------------------------------------------------------------------------------- errors


MIXES = [
    "add local", "local add", "matmul local", "cat local", "where local", "add other placement", "add other hierarchy",
    "in place local", "setitem local", "embedding", "to_global without sbp", "to_global without placement", "to_local of local",
    "placement of local", "sbp of local", "to one device", "local gradient",
]  # fmt: skip


def _mixes():
    g = leaf(X, p4, "B").detach()
    local = sbpjax.tensor(X)
    other = leaf(X, lambda: sbpjax.placement("cpu", [0, 1]), "B").detach()
    grid = leaf(X, p22, "B,B").detach()
    return {
        "add local": lambda: g + local,
        "local add": lambda: local + g,
        "matmul local": lambda: sbpjax.matmul(g, sbpjax.ones(6, 2)),
        "cat local": lambda: sbpjax.cat([g, local]),
        "where local": lambda: sbpjax.where(local > 0, g, g),
        "add other placement": lambda: g + other,
        "add other hierarchy": lambda: g + grid,
        "in place local": lambda: g.add_(local),
        "setitem local": lambda: g.__setitem__(0, sbpjax.ones(6)),
        "embedding": lambda: sbpjax.nn.functional.embedding(sbpjax.tensor([0, 1]), g),
        "to_global without sbp": lambda: local.to_global(p4()),
        "to_global without placement": lambda: local.to_global(sbp="B"),
        "to_local of local": lambda: local.to_local(),
        "placement of local": lambda: local.placement,
        "sbp of local": lambda: local.sbp,
        "to one device": lambda: g.to("cpu:0"),
        "local gradient": lambda: g.clone().requires_grad_().backward(local),
    }


@pytest.mark.parametrize("name", MIXES)
def test_mixing_is_refused(name):
    with pytest.raises(MixedTensorError) as caught:
        _mixes()[name]()
    text = str(caught.value)
    assert all(part in text for part in ("seen:", "rule:", "fix:", "test_global.py"))


def test_mixing_error_names_both_and_the_fix():
    g, local = leaf(X, p4, "B"), sbpjax.tensor(X)
    with pytest.raises(MixedTensorError) as caught:
        g + local
    text = str(caught.value)
    assert "local (5, 6) on cpu:0" in text and "ranks=[0, 1, 2, 3]" in text and "x.to_global(" in text


@pytest.mark.parametrize(
    "bad, error",
    [
        (lambda x: x.to_global(p4(), "S2"), SbpError), (lambda x: x.to_global(p4(), []), SbpError),
        (lambda x: x.to_global(p22(), "B"), SbpError), (lambda x: x.to_global(p4(), 0), TypeError),
        (lambda x: x.to_global("cpu", "B"), PlacementTypeError), (lambda x: x.to_global(p4(), "B", grad_sbp="B,B"), SbpError),
        (lambda x: x.to_global(p4(), "S0").jax(), ValueError), (lambda x: x.to_global(p4(), "B").item(), RuntimeError),
        (lambda x: x.to_global(p4(), "B", wrong=1), TypeError),
    ],
)  # fmt: skip
def test_bad_arguments(bad, error):
    with pytest.raises(error):
        bad(sbpjax.tensor(X))


def test_backward_of_a_partial_loss():
    x = leaf(X, p4, "S0")
    loss = x.sum()
    assert loss.layout.codes == (-2,)
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones_like(X))
