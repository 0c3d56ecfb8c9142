"""Short scripts as a user of PyTorch writes them, on global tensors in several layouts, against the same on torch."""

import threading

import numpy as np
import pytest
import torch

import sbpjax

X = np.random.default_rng(0).normal(size=(5, 7)).astype("f")
LAYOUTS = {
    "S0": ((4,), "S0"),
    "S1": ((4,), "S1"),
    "B": ((4,), "B"),
    "S0,S0": ((2, 4), "S0,S0"),
    "B,S0": ((2, 2), "B,S0"),
}


def lay(value, layout):
    hierarchy, sbp = LAYOUTS[layout]
    ranks = np.arange(np.prod(hierarchy)).reshape(hierarchy).tolist()
    return sbpjax.tensor(value, placement=sbpjax.placement("cpu", ranks), sbp=sbp)


def same(script, layout):
    want, got = torch.tensor(X), lay(X, layout)
    before = got.sbp
    script(want)
    script(got)
    assert got.sbp == before
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6, atol=1e-6)


def add_to_masked(x):
    x[x < -0.5] += 3


def add_to_gathered(x):
    x[[0, 4, 2]] += 1
    x[[1, 3], [0, 6]] *= 2


def write_rows(x):
    x[0].zero_()
    x[1].add_(1.0)
    x[2].relu_()
    x[3] -= 2
    x[4].fill_(7)


def write_columns_of_transpose(x):
    x.t()[2].exp_()
    x.t()[0].clamp_(0, 1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("script", [add_to_masked, add_to_gathered, write_rows, write_columns_of_transpose])
def test_writes_do_not_depend_on_the_layout(script, layout):
    same(script, layout)


def test_a_partial_sum_can_be_overwritten_whole():
    x = sbpjax.tensor(X, placement=sbpjax.placement("cpu", [0, 1, 2, 3]), sbp="P")
    assert x.zero_() is x and x.sbp == (sbpjax.sbp.partial_sum,)
    assert not x.numpy().any()
    x.fill_(2.5)
    assert x.sbp == (sbpjax.sbp.partial_sum,)
    np.testing.assert_array_equal(x.numpy(), np.full_like(X, 2.5))


@pytest.mark.parametrize("layout", ["S0", "B"])
def test_a_hook_keeps_the_shape(layout):
    x = lay(X, layout).requires_grad_()
    x.register_hook(lambda grad: grad[0])
    with pytest.raises(RuntimeError, match="a hook may change the values"):
        (x * 2).sum().backward()
    assert x.grad is None


def test_threads_do_not_share_no_grad():
    x = lay(X, "S0").requires_grad_()
    recorded, errors = [], []

    def work():
        try:
            a = lay(X, "S0").requires_grad_()
            for _ in range(5):
                (a * 2).sum().backward()
            recorded.append(a.grad.numpy())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    with sbpjax.no_grad():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not (x * 2).requires_grad
    assert not errors
    for grad in recorded:
        np.testing.assert_array_equal(grad, np.full_like(X, 10))


OUTSIDE = {
    "get": lambda x, i, F: x[i],
    "set": lambda x, i, F: x.__setitem__(i, 1.0),
    "list": lambda x, i, F: x[[0, 9]],
    "negative": lambda x, i, F: x[[-6]],
    "column": lambda x, i, F: x[:, [7]],
    "embedding": lambda x, i, F: F.embedding(i, x),
    "cross_entropy": lambda x, i, F: F.cross_entropy(x, i),
    "nll_loss": lambda x, i, F: F.nll_loss(x, i),
}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("layout", ["local", "S0", "S1", "B"])
def test_an_index_outside_its_dim_is_an_error(name, layout):
    index = np.array([0, 1, 0, 2, 9])
    x = sbpjax.tensor(X) if layout == "local" else lay(X, layout)
    i = sbpjax.tensor(index) if layout == "local" else lay(index, "B" if layout == "S1" else layout)
    with pytest.raises(IndexError, match="out of (range|bounds)"):
        OUTSIDE[name](x, i, sbpjax.nn.functional)
    np.testing.assert_array_equal(x.numpy(), X)


def test_ignored_targets_are_not_outside():
    x, target = lay(X, "S0"), np.array([0, -100, 3, 6, -100])
    want = torch.nn.functional.cross_entropy(torch.tensor(X), torch.tensor(target))
    got = sbpjax.nn.functional.cross_entropy(x, lay(target, "S0"))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)


MISTAKES = {
    "dtype": (lambda x: sbpjax.ones(3, dtype="float99"), TypeError),
    "learning rate": (lambda x: sbpjax.optim.SGD([x], lr=-1), ValueError),
    "betas": (lambda x: sbpjax.optim.Adam([x], betas=(2, 0.5)), ValueError),
    "no parameters": (lambda x: sbpjax.optim.SGD([], lr=1), ValueError),
    "a tensor": (lambda x: sbpjax.optim.SGD(x, lr=1), TypeError),
    "a string": (lambda x: sbpjax.optim.SGD("a", lr=1), TypeError),
    "no leaf": (lambda x: sbpjax.optim.SGD([x * 2], lr=1), ValueError),
    "local grad": (lambda x: setattr(x, "grad", sbpjax.ones(5, 7)), RuntimeError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_in_four_parts(name):
    run, kind = MISTAKES[name]
    x = lay(X, "S0").requires_grad_()
    with pytest.raises(kind) as caught:
        run(x)
    text = str(caught.value)
    assert all(part in text for part in ("seen:", "rule:", "fix:", "test_user_scripts.py:"))
    assert x.grad is None


@pytest.mark.parametrize("layout", ["local", "S0"])
def test_numpy_of_a_tensor_that_requires_grad_is_a_copy(layout):
    x = (sbpjax.tensor(X) if layout == "local" else lay(X, layout)).requires_grad_()
    x.numpy()[:] = 0
    x.detach().numpy()[:] = 0
    np.testing.assert_array_equal(x.numpy(), X)
    (x * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * X, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:where received a uint8 condition")  # PyTorch deprecates it
@pytest.mark.parametrize("dtype", ["float32", "int64", "int32", "uint8", "bool", "bfloat16"])
def test_a_condition_is_bool_or_of_integers(dtype):
    """PyTorch refuses the wider integers; OneFlow takes them, and so do we."""
    results = []
    for package in (torch, sbpjax):
        x = package.ones(3)
        try:
            results.append(package.where(package.tensor([1, 0, 1]).to(getattr(package, dtype)), x, -x).tolist())
        except RuntimeError as error:
            results.append("refused")
            assert "boolean" in str(error)
    assert results[1] == ([1.0, -1.0, 1.0] if "int" in dtype else results[0])


OF_SPELLINGS = [
    "T.einsum(x, [0, 1], x, [2, 1], [0, 2])", "T.einsum(x, [..., 1], [...])", "T.einsum(x, [1, 0])",
    "T.outer(T.tensor([True, False]), T.tensor([True, True]))", "T.inner(x, T.tensor(2))", "T.atleast_2d()",
    "T.asarray(T.ones(2, requires_grad=True), requires_grad=False).requires_grad", "x.get_device()",
    "T.linalg.lstsq(T.eye(3)[None], T.ones(2, 3, 1)).rank.shape", "T.normal(0.5, x).dtype.itemsize",
    "T.gradient(T.tensor([0.0, -2.5, -float('inf'), 0.0, 0.0]))[0]",
    "T.nn.Linear(2, 2).to(T.complex128).weight.dtype.itemsize",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Complex modules")  # PyTorch's
@pytest.mark.parametrize("call", OF_SPELLINGS)
def test_spellings(call):
    got, want = [eval(call, {"T": T, "x": T.tensor([[1.0, 2.0], [3.0, 4.0]])}) for T in (sbpjax, torch)]
    if isinstance(want, torch.Tensor):
        assert str(got.dtype).split(".")[1] == str(want.dtype).split(".")[1]
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    else:
        assert got == want


def test_the_slope_of_prelu_passes_over_an_infinite_value():
    for T in (sbpjax, torch):
        slope = T.tensor([0.25], requires_grad=True)
        T.nn.functional.prelu(T.tensor([float("inf"), -2.0, 1.0]), slope).sum().backward()
        assert slope.grad.tolist() == [-2.0]
