"""Datasets and their compositions, beside PyTorch's."""

import numpy as np
import pytest
import torch.utils.data as theirs

import sbpjax as flow
from sbpjax.utils import data


def test_compositions_equal_torchs():
    for package in (data, theirs):
        x = list(range(10))
        both = package.ConcatDataset([x[:3], x[3:]])
        assert [both[i] for i in (0, 2, 3, 9, -1, -10)] == [0, 2, 3, 9, 9, 0] and len(both) == 10
        part = package.Subset(both, [5, 1])
        assert [part[0], part[1]] == [5, 1] and part.__getitems__([1, 0]) == [1, 5] and len(part) == 2
        named = package.StackDataset(a=x, b=x[::-1])
        assert named[2] == {"a": 2, "b": 7} and package.StackDataset(x, x)[4] == (4, 4) and len(named) == 10
        chain = package.ChainDataset([Stream(package)(2), Stream(package)(3)])
        assert list(chain) == [0, 1, 0, 1, 2]
        assert isinstance(package.Subset(x, [1]) + package.Subset(x, [2]), package.ConcatDataset)


def Stream(package):
    class Stream(package.IterableDataset):
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return iter(range(self.n))

    return Stream


def test_tensor_dataset():
    x, y = flow.arange(6).reshape(3, 2), flow.tensor([7, 8, 9])
    dataset = data.TensorDataset(x, y)
    assert len(dataset) == 3
    row, label = dataset[1]
    assert row.tolist() == [2, 3] and label.item() == 8
    with pytest.raises(ValueError, match="Size mismatch between tensors"):
        data.TensorDataset(x, y[:2])


def test_random_split():
    flow.manual_seed(0)
    parts = data.random_split(range(10), [0.45, 0.55])
    assert [len(p) for p in parts] == [len(p) for p in theirs.random_split(range(10), [0.45, 0.55])] == [5, 5]
    assert sorted(i for p in parts for i in p.indices) == list(range(10))
    again = data.random_split(range(10), [4, 6], flow.Generator().manual_seed(1))
    assert again[0].indices == data.random_split(range(10), [4, 6], flow.Generator().manual_seed(1))[0].indices
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        data.random_split(range(10), [4, 5])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: data.ConcatDataset([]), "should not be an empty iterable"),
        (lambda: data.StackDataset(), "tuple- .via args. or dict-"),
        (lambda: data.StackDataset([1], [1, 2]), "Size mismatch between datasets"),
    ],
)
def test_bad_compositions(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_collate_equals_torchs():
    samples = [
        {"x": np.ones((2, 3), np.float32) * i, "n": i, "f": i / 2, "b": i > 1, "s": f"s{i}", "t": (i, [i, np.int16(i)])}
        for i in range(3)
    ]
    ours, reference = data.default_collate(samples), theirs.default_collate(samples)
    assert ours.keys() == reference.keys() and ours["s"] == reference["s"]
    flat = lambda b: [b["x"], b["n"], b["f"], b["b"], b["t"][0], *b["t"][1]]  # noqa: E731
    for mine, other in zip(flat(ours), flat(reference), strict=True):
        assert isinstance(mine, flow.Tensor) and mine.dtype.name == str(other.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(mine.numpy(), other.numpy())
    assert isinstance(ours["t"], list)
    assert data.default_collate([flow.ones(2), flow.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays"):
        data.default_collate([object()])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        data.default_collate([np.ones(1), np.ones(2)])


def test_convert_makes_tensors_of_arrays_alone():
    made = data.default_convert({"a": np.ones(2), "b": [1, "x"], "c": (np.zeros(1),)})
    assert isinstance(made["a"], flow.Tensor) and made["b"] == [1, "x"] and isinstance(made["c"][0], flow.Tensor)
