"""Functions that PyTorch's libraries and compiled programs call: values, gradients and errors as PyTorch's."""

import importlib

import numpy as np
import pytest
import torch as real

import sbpjax
from sbpjax import mock_torch
from tests.tensor.both import assert_equal, plain

TOLERANCE = 1e-5
DATA = np.array([1.0, 3, 3, 0, 0, 2, 2], np.float32)


@pytest.fixture
def torch():
    """Return sbpjax under its other name; PyTorch, which imports parts of itself late, has its own name meanwhile."""
    with mock_torch.enable():
        return importlib.import_module("torch")


def leaf(m, values):
    return m.tensor(np.asarray(values, np.float32), requires_grad=True)


def with_slopes(m, function, *leaves):
    """Return a result and the gradients of leaves."""
    result = function(*leaves)
    first = result[0] if isinstance(result, tuple) else result
    (first * m.arange(1.0, 1 + first.shape[-1])).nan_to_num(0.0, 0.0, 0.0).sum().backward()
    return [result, *[x.grad for x in leaves]]


def segments(reduce, initial):
    def script(m):
        def reduced(x, axis=0, **places):
            return m.segment_reduce(x, reduce, axis=axis, initial=initial, **places)

        return [
            with_slopes(m, lambda x: reduced(x, lengths=m.tensor([3, 3, 0, 1])), leaf(m, DATA)),
            with_slopes(m, lambda x: reduced(x, offsets=m.tensor([0, 2, 2, 7])), leaf(m, DATA)),
            reduced(m.tensor(DATA), lengths=m.tensor([2, 1]), unsafe=True),
            reduced(m.tensor(DATA), offsets=m.tensor([1, 3, 4])),
            reduced(m.tensor(DATA[:6].reshape(2, 3)), 1, lengths=m.tensor([[1, 2], [3, 0]])),
            reduced(m.tensor(DATA[:6].reshape(3, 2)), lengths=m.tensor([2, 1])),
        ]

    return script


def normalized(m):
    x, weight = leaf(m, DATA[:6].reshape(3, 2)), leaf(m, [2.0, 3.0])
    mean, var = m.zeros(2), m.ones(2)
    return [
        with_slopes(m, lambda x, w: m._native_batch_norm_legit(x, w, None, mean, var, True, 0.5, 0.1), x, weight),
        list(m._native_batch_norm_legit(x.detach(), None, None, mean, var, False, 0.5, 0.1)),
        list(m._native_batch_norm_legit(x.detach(), None, None, True, 0.5, 0.1)),
        [mean, var],
    ]


def masked(m):
    x, mask = leaf(m, DATA[:6].reshape(3, 2)), m.tensor([True, False, True])
    indices = [m.tensor([2, 99, -1]), m.tensor([0, 5, 1])]
    return [
        with_slopes(m, lambda x: m._unsafe_masked_index(x, mask, indices, 7.5), x),
        with_slopes(
            m,
            lambda x, v: m._unsafe_masked_index_put_accumulate(x, mask, indices, v),
            leaf(m, np.eye(3, 2)),
            leaf(m, [4, 5, 6]),
        ),
        m._unsafe_masked_index(m.zeros(0, 2), mask, indices, 7),
        m._unsafe_masked_index_put_accumulate(m.zeros(0, 2), mask, indices, m.ones(3)),
    ]


def chunks(m):
    rows, wide = m.arange(6.0).reshape(3, 2), m.arange(5.0).reshape(5, 1)
    out = m.zeros(0)
    return [
        [m._chunk_cat([rows, wide], 0, n) for n in (1, 2, 4)],
        m._chunk_cat([rows, rows.repeat(1, 3)], -1, 4),
        [m._chunk_cat([wide, wide], 1, 2, out=out), out],
    ]


SCRIPTS = {f"segments {r} {i}": segments(r, i) for r in ("sum", "mean", "prod", "max", "min") for i in (None, 2)} | {
    "chunks": chunks,
    "masked": masked,
    "normalized": normalized,
    "slope of a softmax": lambda m: with_slopes(
        m, lambda g: m._softmax_backward_data(g, m.tensor([0.3, 0.7]), 0, m.float32), leaf(m, [1, 2])
    ),
    "softmax of masked rows": lambda m: [
        with_slopes(m, lambda x: m._safe_softmax(x, 1), leaf(m, [[1, 2], [-np.inf] * 2, [1, -np.inf]])),
        m._safe_softmax(m.tensor([1, 2]), 0, dtype=m.float64),
    ],
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_values_are_those_of_pytorch(torch, name):
    assert_equal(plain(SCRIPTS[name](torch)), plain(SCRIPTS[name](real)), TOLERANCE, TOLERANCE)


WRONG = {
    "unknown reduction": lambda m: m.segment_reduce(m.ones(2), "median", lengths=m.tensor([2])),
    "no segments": lambda m: m.segment_reduce(m.ones(2), "sum"),
    "short segments": lambda m: m.segment_reduce(m.ones(2), "sum", lengths=m.tensor([1])),
    "negative length": lambda m: m.segment_reduce(m.ones(2), "sum", lengths=m.tensor([-1, 3])),
    "no such axis": lambda m: m.segment_reduce(m.ones(2), "sum", lengths=m.tensor([2]), axis=1),
    "another axis": lambda m: m.segment_reduce(m.ones(2, 2), "sum", lengths=m.tensor([2]), axis=1),
    "integers": lambda m: m.segment_reduce(m.tensor([1]), "sum", lengths=m.tensor([1])),
    "no tensors": lambda m: m._chunk_cat([], 0, 1),
    "no chunks": lambda m: m._chunk_cat([m.ones(2)], 0, 0),
    "empty tensor": lambda m: m._chunk_cat([m.ones(0)], 0, 1),
    "dtypes": lambda m: m._chunk_cat([m.ones(2), m.tensor([1])], 0, 1),
    "sizes": lambda m: m._chunk_cat([m.ones(2, 2), m.ones(3, 2)], 1, 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_of_the_classes_of_pytorch(torch, name):
    with pytest.raises((RuntimeError, IndexError)) as wanted:
        WRONG[name](real)
    with pytest.raises(wanted.type):
        WRONG[name](torch)


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
def test_segments_of_global_tensors_and_in_a_program_are_those_of_local_ones(torch, reduce):
    place, split = sbpjax.placement("cpu", [0, 1]), sbpjax.sbp.split
    data, lengths = torch.arange(12.0).reshape(4, 3), torch.tensor([1, 0, 3])

    def reduced(x, lengths):
        return torch.segment_reduce(x, reduce, lengths=lengths, initial=2)

    wanted = plain(reduced(data, lengths))
    everywhere = lengths.to_global(place, sbpjax.sbp.broadcast)
    for sbp in (split(0), split(1)):
        assert_equal(plain(reduced(data.to_global(place, sbp), everywhere)), wanted, TOLERANCE, TOLERANCE)
    assert_equal(plain(sbpjax.compile(reduced)(data, lengths)), wanted, TOLERANCE, TOLERANCE)
