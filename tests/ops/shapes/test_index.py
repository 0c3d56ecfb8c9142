"""Reading and writing x[...] against torch: every kind of entry, alone and mixed, with gradients."""

import jax
import numpy as np
import pytest
import torch

from sbpjax._core.ops.shapes import index as ix
from sbpjax.errors import OpError, OpIndexError, OpTypeError, OpValueError
from tests.ops.checker import BF16, B, F, I, case, run

X = F(4, 5, 6)
I1, I2, I0 = I(3, low=-4, high=4), I(2, 3, low=-4, high=4, seed=1), np.asarray(-2)
ROW, COL = I(3, low=-4, high=4, seed=2), I(2, 1, low=-5, high=5, seed=3)
S = np.s_
BASIC = [
    S[1],
    S[-1, 2],
    S[1:3],
    S[:, ::2],
    S[..., -3:],
    S[None],
    S[1, ..., 2],
    S[:, None, 1:4:3, -1],
    S[3:1],
    S[...],
    S[0, 0, 0],
    S[()],
    S[True],
]
BASIC += [S[99:], S[-99:2], S[1:99:2, 3, None, ..., None]]
ADVANCED = [
    S[I1],
    S[I2],
    S[:, I1],
    S[..., I2],
    S[I1, ROW],
    S[I1, COL],
    S[I1, :, ROW],
    S[:, I1, ROW],
    S[1:3, I1],
    S[I1, None, ROW],
    S[2, I1],
    S[I1, 2],
]
ADVANCED += [
    S[:, 1, I2],
    S[I1, ..., 1:3],
    S[[0, -1]],
    S[[0, 1], :, [1, 2]],
    S[I(0)],
    S[None, I1, :, None],
    S[I1, ROW, I(2, 1, 1, seed=4)],
    S[I1.astype(np.int32), ROW],
]
PICKS = [S[I0], S[:, I0], S[I0, I1], S[I1, :, I0], S[I0, ..., I0], S[:, I0, I1], S[1:, I0, ::2]]


def torch_index(index):
    entries = index if isinstance(index, tuple) else (index,)
    return tuple(torch.from_numpy(np.asarray(e)) if isinstance(e, np.ndarray) else e for e in entries)


def get_case(x, index):
    spec, arrays = ix.parse(index, x.shape)
    return case(ix.getitem, lambda x, *_, spec: x[torch_index(index)], x, *arrays, spec=spec)


def write(x, value, index, accumulate=False):
    x = x.clone()
    if accumulate:
        return x.index_put(torch_index(index), value, accumulate=True)
    x[torch_index(index)] = value
    return x


def set_case(x, value, index, accumulate=False):
    spec, arrays = ix.parse(index, x.shape)
    ref = lambda x, value, *_, **__: write(x, value, index, accumulate)  # noqa: E731
    return case(ix.setitem, ref, x, value, *arrays, spec=spec, accumulate=accumulate)


def region(index):
    return torch.zeros(X.shape)[torch_index(index)].shape


def distinct(index):
    """Whether no place is written twice: of repeated places any may win."""
    counts = torch.arange(X.size).reshape(X.shape)[torch_index(index)].flatten()
    return len(counts.unique()) == len(counts)


CASES = [get_case(X, i) for i in BASIC + ADVANCED + PICKS]
CASES += [get_case(x, S[I(2, low=-3, high=3)]) for x in (I(3), B(3), F(3, 2, dtype=BF16))] + [
    get_case(F(0, 3), S[:, 1]),
    get_case(F(), S[None, ...]),
]
CASES += [set_case(X, F(*region(i)), i) for i in BASIC if i is not True]
CASES += [set_case(X, F(*region(i)), i) for i in ADVANCED + PICKS if distinct(i)]
CASES += [set_case(X, v, i) for v in (2.5, F()) for i in (S[1], S[:, 1:3], S[I1], S[::2, I1], S[I0], S[..., ::2])]
CASES += [set_case(X, F(6), S[1]), set_case(X, F(1, 1, 6), S[1, 2]), set_case(X, F(1, 6), S[1:3])]
CASES += [
    set_case(X, F(3, 1, 6), S[np.array([0, -1, 1])]),
    set_case(I(4), 2.7, S[1]),
    set_case(F(3, dtype=BF16), F(), S[1:]),
    set_case(X, F(5, 6), S[[0]]),
]
CASES += [
    set_case(X, F(3, 5, 6), S[I1], True),
    set_case(X, F(3, 6), S[I1, ROW], True),
    set_case(X, F(2, 3, 6, seed=1), S[I1, COL], True),
]
MASK = B(4)
CASES += [set_case(X, v, S[m]) for v in (0.0, F()) for m in (MASK, B(4, 5), B(4, 5, 6))]
CASES += [set_case(X, 1.5, i) for i in (S[:, B(5)], S[..., B(6)], S[:, B(5, 6)])] + [
    set_case(X, F(1, 5, 6), S[MASK]),
    set_case(X, F(5, 6), S[MASK]),
    set_case(X, F(1, 6), S[B(4, 5)]),
]
CASES += [set_case(X, F(6), S[MASK]), set_case(I(4), 9, S[MASK])]

test_against_torch = run(CASES)


@pytest.mark.parametrize("m", [B(4), B(4, 5), B(4, 5, 6)], ids=lambda m: str(m.shape))
def test_masks_are_read_through_their_indices(m):
    spec, tensors = ix.expand_masks(*ix.parse(S[m], X.shape), lambda mask: [np.asarray(i) for i in np.nonzero(mask)])
    np.testing.assert_array_equal(ix.getitem(X, *tensors, spec=spec), X[m])
    value = F(*X[m].shape)
    want = X.copy()
    want[m] = value
    np.testing.assert_array_equal(ix.setitem(X, value, *tensors, spec=spec), want)


def test_masks_among_others():
    index = S[1:3, B(5), None, I0]
    spec, tensors = ix.expand_masks(*ix.parse(index, X.shape), lambda mask: [np.asarray(i) for i in np.nonzero(mask)])
    np.testing.assert_array_equal(ix.getitem(X, *tensors, spec=spec), to_torch_result(index))


def to_torch_result(index):
    return torch.from_numpy(X)[torch_index(index)].numpy()


def test_repeated_writes_leave_one_of_the_values():
    spec, arrays = ix.parse(S[np.array([1, 1, 1])], (3,))
    out = np.asarray(ix.setitem(F(3), np.array([7, 8, 9], np.float32), *arrays, spec=spec))
    assert out[1] in (7, 8, 9)
    grad = jax.grad(lambda v: ix.setitem(F(3), v, *arrays, spec=spec)[1])(np.array([7.0, 8, 9], np.float32))
    np.testing.assert_array_equal(grad, [1, 1, 1])


def test_outside_index_tensor_reads_nan():
    assert np.isnan(ix.getitem(F(3), np.array([5]), spec=(("array",),)))


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED, *PICKS], ids=lambda i: str(i).replace("\n", ""))
def test_region_shape(index):
    spec, arrays = ix.parse(index, X.shape)
    assert ix.region_shape(X.shape, spec, [a.shape for a in arrays]) == tuple(region(index))


@pytest.mark.parametrize(
    "index, primitives", [(S[1:3], ["slice"]), (S[1], ["slice", "squeeze"]), (S[None], ["broadcast_in_dim"])], ids=str
)
def test_basic_reads_are_slices(index, primitives):
    spec, _ = ix.parse(index, X.shape)
    assert [e.primitive.name for e in jax.make_jaxpr(lambda x: ix.getitem(x, spec=spec))(X).eqns] == primitives


BAD = [
    (S[4], OpIndexError, "out of range"),
    (S[0, 0, 0, 0], OpIndexError, "too many"),
    (S[..., ...], OpIndexError, "one ellipsis"),
    (S[::-1], OpValueError, "greater"),
]
BAD += [
    (S[1.5], OpIndexError, "int, slice"),
    (S[F(2)], OpTypeError, "integers"),
    (S[B(5)], OpIndexError, "mask"),
    (S["a"], OpTypeError, "int, slice"),
]


@pytest.mark.parametrize("index, error, text", BAD, ids=str)
def test_parse_errors(index, error, text):
    with pytest.raises(error, match=text):
        ix.parse(index, X.shape)


def test_value_errors():
    with pytest.raises(OpError, match="broadcasts"):
        ix.setitem(X, F(5), spec=ix.parse(S[1], X.shape)[0])
    with pytest.raises(OpValueError, match="expand_masks"):
        ix.getitem(X, MASK, spec=(("mask", 1),))
    with pytest.raises(OpValueError, match="one element"):
        ix.setitem(X, F(2, 5, 6), MASK, spec=ix.parse(S[MASK], X.shape)[0])
