"""A compiled function that changes what is not in ``state=`` is refused, and nothing of the user's is changed by it."""

import numpy as np
import pytest

import sbpjax
from sbpjax.errors import AutogradError

PLACES = ["local", "global"]


def made(place, value):
    if place == "local":
        return sbpjax.tensor(value)
    return sbpjax.tensor(value, placement=sbpjax.placement("cpu", [0, 1]), sbp="B")


def linear(place):
    model = sbpjax.nn.Linear(3, 2)
    return model if place == "local" else model.to_global(sbpjax.placement("cpu", [0, 1]), "B")


@pytest.mark.parametrize("place", PLACES)
def test_an_optimizer_that_is_not_named(place):
    model = linear(place)
    optimizer = sbpjax.optim.AdamW(model.parameters(), lr=0.1)
    x = made(place, np.ones((4, 3), "f"))
    before = model.weight.numpy()

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    with pytest.raises(AutogradError, match="state="):
        sbpjax.compile(step)(x)
    with pytest.raises(AutogradError, match="state="):
        sbpjax.compile(step, state=(model,))(x)
    assert model.weight.grad is None and not optimizer.state
    np.testing.assert_array_equal(model.weight.numpy(), before)
    first = step(x).item()
    assert step(x).item() < first


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_that_is_not_named(place):
    model = linear(place)
    x = made(place, np.ones((4, 3), "f"))
    model(x).sum().backward()
    before = model.weight.grad.numpy()

    def step(x):
        loss = model(x).sum()
        loss.backward()
        return loss

    with pytest.raises(AutogradError, match="grad of a tensor"):
        sbpjax.compile(step)(x)
    np.testing.assert_array_equal(model.weight.grad.numpy(), before)


@pytest.mark.parametrize("place", PLACES)
def test_a_tensor_and_its_view_that_are_not_named(place):
    total = made(place, np.zeros((2, 3), "f"))
    row = total[0]
    x = made(place, np.ones((3,), "f"))

    def count(x):
        row.add_(x)
        return x * 2

    with pytest.raises(AutogradError, match="writes a tensor"):
        sbpjax.compile(count)(x)
    assert not total.numpy().any() and not row.numpy().any()
    row.add_(x)
    np.testing.assert_array_equal(total.numpy(), [[1, 1, 1], [0, 0, 0]])


@pytest.mark.parametrize("place", PLACES)
def test_what_the_function_makes_itself_may_be_written(place):
    x = made(place, np.ones((3,), "f"))

    def make(x):
        kept, dropped = made(place, np.zeros(3, "f")), made(place, np.zeros(3, "f"))
        kept += x
        dropped[0] = x[1]
        return kept, (kept * dropped).sum()

    kept, total = sbpjax.compile(make)(x)
    np.testing.assert_array_equal(kept.numpy(), [1, 1, 1])
    assert total.item() == 1


@pytest.mark.parametrize("ranks, sbp", [([0, 1], "S0"), ([0, 1], "P"), ([0, 1, 2, 3], "S0")])
def test_data_of_the_function_in_uneven_parts_and_summands(ranks, sbp):
    where = {"placement": sbpjax.placement("cpu", ranks), "sbp": sbp}
    x = sbpjax.ones(5, **where)
    add = sbpjax.compile(lambda x: x + sbpjax.tensor(np.arange(5, dtype="f"), **where))
    np.testing.assert_array_equal(add(x).numpy(), [1, 2, 3, 4, 5])


def test_batch_statistics_that_are_not_named():
    norm = sbpjax.nn.BatchNorm1d(3)
    x = sbpjax.randn(4, 3)
    with pytest.raises(AutogradError, match="state="):
        sbpjax.compile(norm)(x)
    assert not norm.running_mean.numpy().any()
    sbpjax.compile(lambda x: norm(x), state=norm)(x)
    assert norm.running_mean.numpy().any()


def test_constants_of_the_surroundings_meet_each_other_in_a_trace():
    table, number = sbpjax.tensor([1.0, 2.0, 3.0]), sbpjax.tensor(2)

    def fn(x):
        high, low = table.max(0)[0], (table * number).clamp(0, 3)
        return x * (high + low) + sbpjax.cat([table, table])[:3].relu()

    got = sbpjax.compile(fn)(sbpjax.ones(3))
    np.testing.assert_allclose(got.numpy(), [3 + 2 + 1, 3 + 3 + 2, 3 + 3 + 3])


def test_an_argument_is_not_written():
    x = sbpjax.ones(3)
    with pytest.raises(AutogradError, match=r"(?s)compile.*writes its argument float32\[3\].*fix: .*state="):
        sbpjax.compile(lambda x: x.mul_(2))(x)
    assert x.tolist() == [1.0, 1.0, 1.0]
    doubled = sbpjax.compile(lambda y: y.clone().mul_(2))(x)
    assert doubled.tolist() == [2.0, 2.0, 2.0]
    sbpjax.compile(lambda: x.mul_(2), state=x)()
    assert x.tolist() == [2.0, 2.0, 2.0]
