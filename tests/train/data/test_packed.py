"""Packed samples: what they hold, their order, and loaders: workers without JAX, resuming, any number of ranks."""

import itertools
import sys

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.train.data import Blend, PackedTokens, TokenFile, TokenFileWriter
from sbpjax.utils import data

TOKENS, LENGTH = 203, 4  # 50 samples per epoch


class Spied(PackedTokens):
    def sample(self, number):
        return (*super().sample(number), np.int64("jax" in sys.modules))


@pytest.fixture
def prefix(tmp_path):
    with TokenFileWriter(tmp_path / "t", np.uint16) as writer:
        writer.add_many(np.arange(TOKENS), [3, 0, 100, 99, 1])
    return tmp_path / "t"


def test_samples_cross_documents_and_share_one_token(prefix):
    pieces = PackedTokens(prefix, LENGTH, shuffle=False)
    assert len(pieces) == pieces.per_epoch == 50
    for i, (inputs, targets) in enumerate(pieces):
        assert inputs.dtype == targets.dtype == np.int64
        assert inputs.tolist() == list(range(4 * i, 4 * i + 4)) and targets.tolist() == list(
            range(4 * i + 1, 4 * i + 5)
        )
    assert PackedTokens(prefix, LENGTH, dtype=np.int32)[0][0].dtype == np.int32
    assert len(PackedTokens(prefix, TOKENS - 1)) == 1


def test_each_epoch_has_every_sample_once_in_its_own_order(prefix):
    pieces = PackedTokens(TokenFile(prefix), LENGTH, samples=125, seed=7)
    order = [int(x[0]) // LENGTH for x, _ in pieces]
    epochs = [order[:50], order[50:100]]
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs) and epochs[0] != epochs[1]
    assert order == [int(x[0]) // LENGTH for x, _ in PackedTokens(prefix, LENGTH, samples=125, seed=7)]
    assert order != [int(x[0]) // LENGTH for x, _ in PackedTokens(prefix, LENGTH, samples=125, seed=8)]
    assert int(pieces.sample(124)[0][0]) // LENGTH == order[124]
    assert pieces.sample(10**12)[0].shape == (LENGTH,)


def test_workers_have_no_jax(prefix):
    pieces = Spied(prefix, LENGTH, samples=60)
    here = [x.tolist() for x, _ in PackedTokens(prefix, LENGTH, samples=60)]
    rows, with_jax = [], []
    for x, _, jax in data.DataLoader(pieces, 8, num_workers=2):
        rows += x.tolist()
        with_jax += jax.tolist()
    assert rows == here and not any(with_jax)


def blended(prefix):
    return Blend([PackedTokens(prefix, LENGTH, seed=seed) for seed in (1, 2)], [2, 1], 400)


def test_twenty_stops_lose_and_double_nothing(prefix):
    whole = [x.tolist() for x, _ in data.DataLoader(blended(prefix), 2)]
    rng, state, taken = np.random.default_rng(0), None, []
    for stop in range(21):
        loader = data.DataLoader(blended(prefix), 2)
        if state is not None:
            loader.load_state_dict(state)
        steps = rng.integers(1, 10) if stop < 20 else None
        for x, _ in itertools.islice(loader, steps):
            taken.append(x.tolist())
        state = loader.state_dict()
    assert taken == whole and len(whole) == 200


def test_the_same_global_batches_on_any_number_of_ranks(prefix):
    batches = {}
    for ranks in (1, 2, 4):
        placement = flow.placement("cpu", list(range(ranks)))
        loader = data.GlobalLoader(data.DataLoader(blended(prefix), 8), placement, flow.sbp.split(0))
        batches[ranks] = [(x.tolist(), y.tolist()) for x, y in loader]
        state_of = iter(loader)
        for _ in range(3):
            next(state_of)
        other = data.GlobalLoader(data.DataLoader(blended(prefix), 8), flow.placement("cpu", [0]), flow.sbp.split(0))
        other.load_state_dict(loader.state_dict())
        assert [(x.tolist(), y.tolist()) for x, y in other] == batches[ranks][3:]  # on another number of ranks
    assert batches[1] == batches[2] == batches[4] and len(batches[1]) == 50


@pytest.mark.parametrize("length", [0, TOKENS, 10**6])
def test_a_file_that_is_too_short(prefix, length):
    with pytest.raises(DataError, match=f"length={length}, .*t.bin has 203 tokens\n  rule: a sample has length \\+ 1"):
        PackedTokens(prefix, length)
