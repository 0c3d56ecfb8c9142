"""Beams against all sequences that there are, where few are enough to count them."""

import itertools

import numpy as np
import pytest

from sbpjax.models.beams import Beams

VOCAB, STOP = 3, 2
ODDS = np.random.default_rng(0).dirichlet(np.ones(VOCAB), (VOCAB + 1, 3))  # of a token, by the one before and the step


def step(beams, scores):
    """Return the candidates of a step as a device gives them."""
    last = beams.tokens[..., -1] if beams.tokens.shape[-1] else np.full(beams.scores.shape, VOCAB)
    sums = scores[..., None] + np.log(ODDS[last, beams.tokens.shape[-1]])
    flat = sums.reshape(len(sums), -1)
    places = np.argsort(-flat, axis=1, kind="stable")[:, : beams.candidates]
    return np.take_along_axis(flat, places, 1), places


def searched(count, stop, penalty):
    beams = Beams(2, count, 3, stop, penalty)
    while not beams.is_done:
        order = beams.advance(*step(beams, beams.scores), VOCAB)
        assert order.shape == (2, count) and (order < count).all()
    return beams.best()


def best_of_all(stop, penalty):
    found = []
    for tokens in itertools.product(range(VOCAB), repeat=3):
        ends = [i for i, token in enumerate(tokens) if token in stop]
        tokens = tokens[: ends[0] + 1] if ends else tokens
        score = sum(np.log(ODDS[before, i, token]) for i, (before, token) in enumerate(zip((VOCAB, *tokens), tokens)))
        found.append((score / len(tokens) ** penalty, list(tokens)))
    return max(found)[1]


@pytest.mark.parametrize("penalty", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("stop", [(), (STOP,)])
def test_enough_beams_find_the_best_sequence(stop, penalty):
    assert searched(9, stop, penalty) == [best_of_all(stop, penalty)] * 2


def test_one_beam_without_stop_is_greedy():
    tokens = []
    for i in range(3):
        tokens.append(int(ODDS[tokens[-1] if tokens else VOCAB, i].argmax()))
    assert searched(1, (), 1.0) == [tokens] * 2


def test_a_prompt_is_done_when_no_beam_can_come_before():
    beams = Beams(1, 2, 9, (0,), 1.0)
    values, places = np.array([[-0.1, -0.2, -5.0, -6.0]]), np.array([[0, 4 + 0, 1, 4 + 2]])  # the best two stop
    order = beams.advance(values, places, 4)
    assert beams.is_done and beams.best() == [[0]]
    assert order.tolist() == [[0, 1]] and beams.tokens[0, :, 0].tolist() == [1, 2]
