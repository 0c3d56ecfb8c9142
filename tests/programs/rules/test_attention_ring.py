"""Ring attention against one rank: causal in zigzag order, windows, masks, segments, uneven lengths; what it moves."""

import functools

import jax
import numpy as np
import pytest

from sbpjax._core.ops.attention.primitive import attention
from sbpjax._core.ops.attention.scores import CAUSAL, EVERY_KEY, Scores
from sbpjax._core.programs.primitives import ATTENTION
from sbpjax._core.programs.rules.attention_ring import exchanges, is_zigzag
from tests.programs.rules.strategy_checker import check, equations

_RNG = np.random.default_rng(3)
ONLY = ATTENTION - {"attention_tangent"}


def _x(*shape):
    return _RNG.standard_normal(shape)


def _case(label, rows, keys, window, mask=None, segments=None, cap=None):
    q, k, v = _x(2, 2, 2, rows, 4), _x(2, 2, keys, 4), _x(2, 2, keys, 3)
    operands = (q, k, v) if mask is None else (q, k, v, mask)
    run = functools.partial(attention, how=Scores(0.5, window, cap), across=("ring", "ring"))
    grad = jax.grad(lambda *x: run(*x, segments=segments).sum(), (0, 1, 2))
    return equations(label, grad, *operands, only=ONLY)


def _few():
    """Return the cases of every test run: zigzag order with an uneven length, and a mask of keys in order."""
    keys = _RNG.random((2, 1, 1, 1, 11)) < 0.4
    return [*_case("causal of 11", 11, 11, CAUSAL), *_case("keys", 8, 11, EVERY_KEY, mask=keys)]


def _many():
    ids = np.sort(_RNG.integers(0, 3, (2, 1, 10)))
    hidden = np.where(_RNG.random((1, 2, 1, 9, 11)) < 0.5, -np.inf, 0.0)
    hidden[..., 0] = 0.0
    return [
        *(f for n in (16, 9, 5, 3) for f in _case(f"causal of {n}", n, n, CAUSAL, cap=2.0 if n == 9 else None)),
        *_case("every key", 8, 12, EVERY_KEY),
        *_case("uneven", 9, 7, EVERY_KEY),
        *_case("causal, more keys", 6, 9, CAUSAL),
        *_case("window", 13, 13, (3, 1)),
        *_case("numbers", 9, 11, EVERY_KEY, mask=hidden),
        *_case("segments", 10, 10, CAUSAL, segments=(ids, ids)),
    ]


def test_strategies_of_four_ranks():
    assert check(_few(), "4") >= 4 * len(_few()) // 2


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("mesh", ["2", "4", "2x2"])
def test_strategies(mesh):
    assert check(_many(), mesh) >= len(_many())


def test_order_is_zigzag_under_a_causal_mask_alone():
    causal, window = Scores(1.0, CAUSAL), Scores(1.0, (4, 0))
    assert is_zigzag(None, None, causal, 8, 8)
    assert not is_zigzag(None, None, causal, 8, 9) and not is_zigzag(None, None, window, 8, 8)
    assert not is_zigzag(np.ones(()), None, causal, 8, 8) and not is_zigzag(None, (), causal, 8, 8)


@pytest.mark.parametrize("size", range(2, 12))
def test_each_rank_gets_a_half_part_of_each_kind(size):
    held = {}
    for first, pairs in enumerate(exchanges(size)):
        assert sorted(to for _, to in pairs) == list(range(size))
        for source, to in pairs:
            held.setdefault(to, set()).add(2 * source + first)
    assert held == {r: {r, 2 * size - 1 - r} for r in range(size)}
