"""Index tensors that name places which do not exist, against PyTorch: what raises, and that nothing is written."""

import re

import numpy as np
import pytest
import torch

import sbpjax
from sbpjax._core.tensor.calls import bounds
from sbpjax.errors import OpBoundsError

X = np.arange(12, dtype=np.float32).reshape(3, 4)
CASES = {
    "gather": "T.gather(x, 0, i[None])",
    "gather, last dim": "T.gather(x, -1, i[:, None])",
    "take": "T.take(x, 3 * i)",
    "take_along_dim, flat": "T.take_along_dim(x, 3 * i)",
    "index_select": "T.index_select(x, 0, i)",
    "index_select, last dim": "x.index_select(-1, 2 * i)",
    "scatter": "x.scatter(0, i[None], 1.0)",
    "scatter_": "x.scatter_(0, i[None], T.ones(1, 2))",
    "scatter, add": "x.scatter(0, i[None], 1.0, reduce='add')",
    "scatter_add": "x.scatter_add(0, i[None], T.ones(1, 2))",
    "scatter_add_": "x.scatter_add_(0, i[None], T.ones(1, 2))",
    "scatter_reduce": "x.scatter_reduce(0, i[None], T.ones(1, 2), 'amax')",
    "scatter_reduce_": "x.scatter_reduce_(0, i[None], T.ones(1, 2), 'sum')",
    "index_add": "x.index_add(0, i, T.ones(2, 4))",
    "index_add_": "x.index_add_(0, i, T.ones(2, 4))",
    "index_copy": "x.index_copy(0, i, T.ones(2, 4))",
    "index_copy_": "x.index_copy_(0, i, T.ones(2, 4))",
    "index_fill": "x.index_fill(0, i, 2.0)",
    "index_fill_": "x.index_fill_(0, i, 2.0)",
    "index_fill_, last dim": "x.index_fill_(-1, i, 2.0)",
    "getitem": "x[i]",
    "setitem": "x.__setitem__(i, 1.0)",
    "setitem, second dim": "x.__setitem__((slice(None), i), 1.0)",
    "index_put_": "x.index_put_((i,), T.tensor(1.0))",
    "index_put": "x.index_put((i, i), T.tensor(1.0), accumulate=True)",
    "embedding": "T.nn.functional.embedding(i, x)",
    "one_hot": "T.nn.functional.one_hot(i, 3)",
}


def run(package, code: str, numbers: list[int], dtype: str = "int64"):
    """Return (value, x afterwards, error) of a snippet."""
    x = package.tensor(X.copy())
    try:
        value = eval(code, {"T": package, "x": x, "i": package.tensor(numbers, dtype=getattr(package, dtype))})
    except (IndexError, RuntimeError) as error:
        return None, x.numpy(), error
    return None if value is None else value.numpy(), x.numpy(), None


@pytest.mark.parametrize("numbers", [[0, 2], [1, 0], [0, 5], [0, -1], [2, -3], [-4, 0], [-13, 1]], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_what_torch_refuses_is_refused_and_writes_nothing(name, numbers):
    value, after, error = run(sbpjax, CASES[name], numbers)
    want, want_after, refused = run(torch, CASES[name], numbers)
    assert (error is None) == (refused is None), (error, refused)
    if refused is None:
        np.testing.assert_array_equal(after, want_after)
        if want is not None:
            np.testing.assert_array_equal(value, want)
        return
    assert isinstance(error, IndexError if isinstance(refused, IndexError) else RuntimeError)
    assert all(part in str(error) for part in ("(at ", "\n  seen: ", "\n  rule: ", "\n  fix:  "))
    np.testing.assert_array_equal(after, X)


@pytest.mark.parametrize("name", CASES)
def test_short_indices_are_refused(name):
    _, after, error = run(sbpjax, CASES[name], [0, 2], "int16")
    refused = run(torch, CASES[name], [0, 2], "int16")[2]
    assert refused is not None and isinstance(error, IndexError if isinstance(refused, IndexError) else RuntimeError)
    np.testing.assert_array_equal(after, X)


@pytest.mark.parametrize("name", ["take", "index_fill", "one_hot"])
def test_int32_indices_are_taken_as_in_oneflow(name):
    value, _, error = run(sbpjax, CASES[name], [0, 2], "int32")
    assert error is None
    np.testing.assert_array_equal(value, run(torch, CASES[name], [0, 2])[0])


PLACES = {
    "S0": (([0, 1],), "S0"),
    "S0, uneven": (([0, 1, 2, 3],), "S0"),
    "B": (([0, 1, 2],), "B"),
    "S0,B": (([[0, 1], [2, 3]],), "S0,B"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [n for n in CASES if "index_put" not in n])
def test_global_indices_are_read_too(name, place):
    (ranks,), sbp = PLACES[place]
    placement = sbpjax.placement("cpu", ranks)

    class Global:
        """The package, with every tensor that a snippet makes on the placement."""

        def __getattr__(self, item):
            return getattr(sbpjax, item)

        def ones(self, *size):
            return sbpjax.ones(*size, placement=placement, sbp=sbp)

    x = sbpjax.tensor(X, placement=placement, sbp=sbp)
    scope = {"T": Global(), "x": x, "i": sbpjax.tensor([0, 5], placement=placement, sbp=sbp)}
    with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)"):
        eval(CASES[name], scope)
    np.testing.assert_array_equal(x.numpy(), X)


@pytest.mark.parametrize("dim", [0, 1])
def test_take_along_dim_counts_from_the_end_and_refuses_what_is_outside(dim):
    x, n = sbpjax.tensor(X), X.shape[dim]
    for index in (np.full((1, 1), k) for k in range(-n, n)):
        want = torch.take_along_dim(torch.tensor(X), torch.tensor(index), dim).numpy()
        np.testing.assert_array_equal(sbpjax.take_along_dim(x, sbpjax.tensor(index), dim).numpy(), want)
    for bad in (-n - 1, n):  # torch takes the remainder: a wrong element that looks right
        with pytest.raises(OpBoundsError):
            sbpjax.take_along_dim(x, sbpjax.tensor([[bad]]), dim)


@pytest.mark.parametrize("name", ["gather_nd", "tensor_scatter_nd_update", "scatter_nd"])
@pytest.mark.parametrize("bad", [[[0, 4]], [[3, 0]], [[0, -1]]], ids=str)
def test_tuples_of_indices(name, bad):
    x, index = sbpjax.tensor(X), sbpjax.tensor(bad)
    call = {
        "gather_nd": lambda i: sbpjax.gather_nd(x, i),
        "tensor_scatter_nd_update": lambda i: sbpjax.tensor_scatter_nd_update(x, i, sbpjax.ones(1)),
        "scatter_nd": lambda i: sbpjax.scatter_nd(i, sbpjax.ones(1), (3, 4)),
    }[name]
    call(sbpjax.tensor([[2, 3]]))
    column = int(np.argmax([not 0 <= v < n for v, n in zip(bad[0], X.shape)]))
    with pytest.raises(OpBoundsError, match=f"dimension {column} with size {X.shape[column]}"):
        call(index)


def test_negative_numbers_cannot_be_counted():
    for package in (sbpjax, torch):
        with pytest.raises(RuntimeError):
            package.bincount(package.tensor([1, -1]))
        with pytest.raises(RuntimeError):
            package.nn.functional.one_hot(package.tensor([1, -1]))


@pytest.mark.parametrize("mask", [np.ones((3, 4), bool), np.ones(4, bool), X > 7], ids=["all", "broadcast", "four"])
def test_masked_scatter_needs_enough_elements(mask):
    for package in (sbpjax, torch):
        x = package.tensor(X.copy())
        for write in (x.masked_scatter, x.masked_scatter_):
            with pytest.raises(RuntimeError):
                write(package.tensor(mask), package.ones(3))
        if package is sbpjax:  # torch has written what it had by then
            np.testing.assert_array_equal(x.numpy(), X)


def test_a_fix_for_an_index_from_the_end_is_named_and_right():
    x, index = sbpjax.tensor(X), sbpjax.tensor([0, -1])
    with pytest.raises(OpBoundsError) as caught:
        x.index_select(0, index)
    assert re.search(r"fix:  .*index % 3$", str(caught.value))
    np.testing.assert_array_equal(x.index_select(0, index % 3).numpy(), X[[0, -1]])


def test_indices_in_a_trace_are_not_read():
    read = sbpjax.compile(lambda x, i: x.index_select(0, i))
    got = read(sbpjax.tensor(X), sbpjax.tensor([1, 5])).numpy()
    np.testing.assert_array_equal(got[0], X[1])
    assert np.isnan(got[1]).all()


def test_an_index_is_read_once_for_one_question(monkeypatch):
    read = []
    whole = bounds.parts_on_cpu
    monkeypatch.setattr(bounds, "parts_on_cpu", lambda index: read.append(index) or whole(index))
    table, small = sbpjax.randn(5, 2), sbpjax.randn(4, 2)
    index = sbpjax.tensor([0, 4, 2])
    for _ in range(3):
        sbpjax.nn.functional.embedding(index, table)
    assert len(read) == 1
    with pytest.raises(IndexError, match=r"4 among int64\[3\]"):
        sbpjax.nn.functional.embedding(index, small)  # another question
    index[1] = 9  # another array
    with pytest.raises(IndexError, match=r"9 among int64\[3\]"):
        sbpjax.nn.functional.embedding(index, table)
    logits, target = sbpjax.randn(3, 5), sbpjax.tensor([0, -100, 2])
    sbpjax.nn.functional.cross_entropy(logits, target)
    with pytest.raises(IndexError, match="-100 among"):
        sbpjax.nn.functional.cross_entropy(logits, target, ignore_index=7)


GRID = sbpjax.placement("cpu", [[0, 1], [2, 3]])


def on_grid(values, sbp: str):
    return sbpjax.tensor(values, placement=GRID, sbp=sbp)


@pytest.mark.parametrize("sbp", ["S0,B", "B,S1", "S1,S1", "S0,S1"])
def test_conditions_of_rows_and_counts_hold_of_the_whole_tensor(sbp):
    weights, mask = on_grid([[0.0, 0.0, 0.0, 5.0], [1.0, 0.0, 0.0, 0.0]], sbp), on_grid([[True, False] * 2] * 2, sbp)
    assert sbpjax.multinomial(weights, 1).tolist() == [[3], [0]]
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        sbpjax.multinomial(weights * 0, 1)
    x = on_grid(np.zeros((2, 4), np.float32), sbp)
    filled = x.masked_scatter(mask, on_grid([1.0, 2.0, 3.0, 4.0], "B,B"))
    assert filled.tolist() == [[1, 0, 2, 0], [3, 0, 4, 0]]
    with pytest.raises(RuntimeError, match="at least one element for every place"):
        x.masked_scatter(mask, on_grid([1.0, 2.0, 3.0], "B,B"))


@pytest.mark.parametrize("sbp", ["S0,B", "B,S1", "S1,S1"])
def test_tuples_of_indices_that_are_split_are_read(sbp):
    x = on_grid(X, "B,B")
    assert sbpjax.gather_nd(x, on_grid([[0, 1], [2, 3]], sbp)).tolist() == [1, 11]
    with pytest.raises(OpBoundsError, match="dimension 1 with size 4"):
        sbpjax.gather_nd(x, on_grid([[0, 1], [2, 4]], sbp))


@pytest.mark.parametrize("sbp", ["B,S0", "S0,B", "S0,S0"])
def test_first_offset_of_bags_is_the_first_of_the_whole_tensor(sbp):
    ids, table = on_grid([2, 1, 0, 2], "B,B"), on_grid(X, "S0,S1")
    bags = sbpjax.nn.functional.embedding_bag(ids, table, on_grid([0, 3], sbp), mode="sum")
    np.testing.assert_array_equal(bags.numpy(), [X.sum(0), X[2]])
    with pytest.raises(ValueError, match="has to be 0"):
        sbpjax.nn.functional.embedding_bag(ids, table, on_grid([1, 3], sbp), mode="sum")
