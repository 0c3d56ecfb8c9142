"""CTC against torch: padded and joined targets, lengths, repeats, impossible sequences, the greedy decoder."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf

import sbpjax
from sbpjax._core.ops.losses import ctc
from sbpjax.errors import OpError
from tests.ops.checker import F, I, case, run


def log_probs(t, n, c):
    x = F(t, n, c) if n else F(t, c)
    return torch.log_softmax(torch.from_numpy(x), -1).numpy()


def _loss(x, targets, given, wanted, blank, longest, reduction, zero_infinity):
    return tf.ctc_loss(x, targets, given, wanted, blank, reduction, zero_infinity)


TARGETS = np.array([[1, 2, 3, 1], [2, 2, 1, 1], [4, 1, 2, 3]])
LENGTHS = np.array([4, 2, 0])
GIVEN = np.array([9, 7, 5])


def both(x, targets, given, wanted, **kw):
    options = {"blank": 0, "longest": 4, "reduction": "mean", "zero_infinity": False, **kw}
    # torch gives NaN where an impossible sequence costs infinity, which no comparison of cases takes
    return case(ctc.ctc_loss, _loss, x, targets, given, wanted, grad=False, **options)


CASES = [both(log_probs(9, 3, 5), TARGETS, GIVEN, LENGTHS, reduction=r) for r in ("mean", "sum", "none")]
CASES += [
    both(log_probs(9, 3, 5), np.array([1, 2, 3, 1, 2, 2]), GIVEN, LENGTHS, reduction="none"),
    both(log_probs(9, 3, 5), TARGETS - 1, GIVEN, LENGTHS, blank=4, reduction="none"),
    both(log_probs(3, 3, 5), TARGETS, np.array([3, 3, 3]), LENGTHS, reduction="none"),
    both(log_probs(3, 3, 5), TARGETS, np.array([3, 3, 3]), LENGTHS, reduction="none", zero_infinity=True),
    both(log_probs(6, 0, 4), np.array([1, 3]), np.array(6), np.array(2), reduction="mean", longest=2),
]


def _softmaxed(x, targets, given, wanted, /, zero_infinity=False):
    import jax

    return ctc.ctc_loss(
        jax.nn.log_softmax(x, -1), targets, given, wanted, longest=4, reduction="sum", zero_infinity=zero_infinity
    )


def _softmaxed_torch(x, targets, given, wanted, zero_infinity=False):
    return tf.ctc_loss(torch.log_softmax(x, -1), targets, given, wanted, reduction="sum", zero_infinity=zero_infinity)


CASES += [
    case(_softmaxed, _softmaxed_torch, F(9, 3, 5), TARGETS, GIVEN, LENGTHS),
    case(_softmaxed, _softmaxed_torch, F(3, 3, 5), TARGETS, GIVEN * 0 + 3, LENGTHS, zero_infinity=True),
]

test_against_torch = run(CASES)


def test_greedy_decoder_takes_blanks_and_repeats_out():
    best = np.array([[1, 1, 0, 1, 2, 2], [0, 0, 3, 3, 0, 1]])
    x = np.full((6, 2, 4), -2.0, np.float32)
    np.put_along_axis(x, best.T[..., None], -0.5, 2)
    labels, score = ctc.ctc_greedy_decoder(x, np.array([6, 4]))
    assert np.asarray(labels).tolist() == [[1, 0, 1, 2, 0, 0], [0, 0, 0, 0, 0, 0]]  # class 3, the last, is the blank
    np.testing.assert_allclose(np.asarray(score), [[3.0], [2.0]])
    labels, _ = ctc.ctc_greedy_decoder(x, np.array([6, 6]), merge_repeated=False)
    assert np.asarray(labels).tolist() == [[1, 1, 0, 1, 2, 2], [0, 0, 0, 1, 0, 0]]


def test_greedy_decoder_is_oneflows():
    scores = [
        [[-1.54, -1.20, -1.95, -1.65, -1.81], [-1.84, -1.74, -1.58, -1.55, -1.12]],
        [[-1.68, -1.48, -1.89, -1.30, -2.07], [-1.13, -1.45, -1.24, -1.61, -1.66]],
        [[-1.56, -1.40, -2.83, -1.67, -1.48], [-1.20, -2.01, -2.05, -1.95, -1.24]],
        [[-2.09, -1.76, -1.36, -1.67, -1.45], [-1.85, -1.48, -1.34, -2.16, -1.55]],
    ]
    labels, score = ctc.ctc_greedy_decoder(np.array(scores, np.float32), np.array([4, 4]))
    assert np.asarray(labels).tolist() == [[1, 3, 1, 2], [0, 2, 0, 0]]  # what OneFlow 0.9.0 gives
    np.testing.assert_allclose(np.asarray(score), [[5.26], [4.79]], rtol=1e-6)


def test_blank_is_a_class():
    with pytest.raises(OpError, match="label range"):
        ctc.ctc_loss(log_probs(4, 2, 3), I(2, 2, low=1, high=3), np.array([4, 4]), np.array([2, 2]), blank=3)


@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_gradient_of_a_leaf_is_that_of_a_log_softmax(reduction, zero_infinity):
    values = np.random.default_rng(0).normal(size=(5, 3, 4)).astype(np.float32)
    targets, steps, sizes = np.array([[1, 1, 1], [1, 2, 3], [2, 0, 0]]), np.array([4, 4, 5]), np.array([3, 3, 1])
    options = {"reduction": reduction, "zero_infinity": zero_infinity}
    found = []
    for m in (sbpjax, torch):
        x = m.tensor(values).log_softmax(-1).detach().requires_grad_()
        # the first alignment is impossible: two blanks do not fit between three equal labels
        loss = m.nn.functional.ctc_loss(x, *(m.tensor(v) for v in (targets, steps, sizes)), **options)
        loss.sum().backward()
        found.append((loss.detach().numpy(), x.grad.numpy()))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
