"""Loaders that go on later: whatever the order comes from is saved, and all later epochs are the same."""

import itertools
import json
import random

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import errors
from sbpjax.utils import data as D

N, BATCH = 20, 3
DATA = D.TensorDataset(flow.arange(N))


def generator(seed=7):
    made = flow.Generator()
    made.manual_seed(seed)
    return made


class OfNumpy(D.Sampler):
    """Draws from a generator of its own whenever it is started."""

    def __init__(self, source):
        self.source = source

    def __iter__(self):
        if isinstance(self.source, random.Random):
            order = list(range(N))
            self.source.shuffle(order)
            return iter(order)
        return iter(self.source.permutation(N).tolist())

    def __len__(self):
        return N


class OfDefaults(D.Sampler):
    """Draws from the default generators of three libraries."""

    def __iter__(self):
        order = flow.randperm(N).tolist()
        random.shuffle(order)
        yield from np.random.permutation(order).tolist()

    def __len__(self):
        return N


class Counted(D.Sampler):
    """Goes on behind the last epoch: its position is a number."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        for _ in range(N):
            self.at += 7
            yield self.at % N

    def __len__(self):
        return N


class Stateful(Counted):
    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Pairs(D.Sampler):
    """A batch sampler around samplers in a list."""

    def __init__(self, *samplers):
        self.samplers = list(samplers)

    def __iter__(self):
        yield from ([a, b] for a, b in zip(*self.samplers))

    def __len__(self):
        return N


class Stream(D.IterableDataset):
    def __init__(self, source=None):
        self.source, self.at = source, 0

    def __iter__(self):
        for _ in range(N):
            self.at += 1
            yield self.at if self.source is None else int(self.source.integers(1000))


class StatefulStream(Stream):
    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def loaders():
    return {
        "sampler with a generator": lambda: D.DataLoader(
            DATA, BATCH, sampler=D.RandomSampler(DATA, generator=generator())
        ),
        "replacement": lambda: D.DataLoader(
            DATA, BATCH, sampler=D.RandomSampler(DATA, replacement=True, generator=generator())
        ),
        "subset": lambda: D.DataLoader(DATA, BATCH, sampler=D.SubsetRandomSampler(range(3, 17), generator=generator())),
        "weights": lambda: D.DataLoader(
            DATA, BATCH, sampler=D.WeightedRandomSampler(np.arange(1, N + 1), 15, generator=generator())
        ),
        "batch sampler": lambda: D.DataLoader(
            DATA, batch_sampler=D.BatchSampler(D.RandomSampler(DATA, generator=generator()), BATCH, True)
        ),
        "nested": lambda: D.DataLoader(
            DATA, batch_sampler=Pairs(D.RandomSampler(DATA, generator=generator(1)), OfNumpy(np.random.default_rng(2)))
        ),
        "one generator": lambda: (
            lambda g: D.DataLoader(DATA, BATCH, sampler=D.RandomSampler(DATA, generator=g), generator=g)
        )(generator()),
        "two samplers of one": lambda: (
            lambda g: D.DataLoader(
                DATA, batch_sampler=Pairs(D.RandomSampler(DATA, generator=g), D.RandomSampler(DATA, generator=g))
            )
        )(generator()),
        "numpy": lambda: D.DataLoader(DATA, BATCH, sampler=OfNumpy(np.random.default_rng(3))),
        "mersenne": lambda: D.DataLoader(DATA, BATCH, sampler=OfNumpy(np.random.RandomState(3))),
        "python": lambda: D.DataLoader(DATA, BATCH, sampler=OfNumpy(random.Random(3))),
        "number": lambda: D.DataLoader(DATA, BATCH, sampler=Counted()),
        "state": lambda: D.DataLoader(DATA, BATCH, sampler=Stateful()),
        "state of a batch sampler": lambda: D.DataLoader(DATA, batch_sampler=D.BatchSampler(Stateful(), BATCH, False)),
        "shuffle": lambda: D.DataLoader(DATA, BATCH, shuffle=True, generator=generator()),
        "stream": lambda: D.DataLoader(StatefulStream(), BATCH),
        "stream with a generator": lambda: D.DataLoader(Stream(np.random.default_rng(5)), BATCH),
        "chain": lambda: D.DataLoader(D.ChainDataset([Stream(np.random.default_rng(6)), StatefulStream()]), BATCH),
    }


def taken(loader, count):
    """Return the next batches, over the ends of epochs."""
    endless = itertools.chain.from_iterable(itertools.repeat(loader))
    return [np.asarray(b[0] if isinstance(b, (list, tuple)) else b).tolist() for b in itertools.islice(endless, count)]


def epochs(loader, stop):
    """Go through a loader up to a place (epoch, batch), and return the state there and what comes after it."""
    rest, state = [], None
    for epoch in range(4):
        if stop == (epoch, 0):
            state = loader.state_dict()
        for number, batch in enumerate(loader, 1):
            if state is not None:
                rest.append(np.asarray(batch[0] if isinstance(batch, (list, tuple)) else batch).tolist())
            if stop == (epoch, number):
                state = loader.state_dict()
    return json.loads(json.dumps(state)), rest


@pytest.mark.parametrize("stop", [(0, 2), (1, 0), (1, 4), (2, 1)], ids=str)
@pytest.mark.parametrize("name", loaders())
def test_all_later_epochs_are_the_same(name, stop):
    state, rest = epochs(loaders()[name](), stop)
    resumed = loaders()[name]()
    resumed.load_state_dict(state)
    assert taken(resumed, len(rest)) == rest


@pytest.mark.parametrize("name", ["sampler with a generator", "numpy", "number", "state", "stream"])
def test_a_resumed_loader_is_saved_and_resumed_again(name):
    state, rest = epochs(loaders()[name](), (1, 2))
    again = loaders()[name]()
    again.load_state_dict(state)
    some = taken(again, 3)
    third = loaders()[name]()
    fourth = loaders()[name]()
    third.load_state_dict(state)
    iterator = iter(third)
    assert [np.asarray(next(iterator)[0] if name != "stream" else next(iterator)).tolist() for _ in range(3)] == some
    fourth.load_state_dict(third.state_dict())
    assert some + taken(fourth, len(rest) - 3) == rest


def test_draws_from_default_generators_are_drawn_again_and_no_others():
    def made():
        return D.DataLoader(DATA, BATCH, sampler=OfDefaults())

    loader = made()
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = loader.state_dict()
    rest = [batch[0].tolist() for batch in iterator]
    flow.manual_seed(99), random.seed(99), np.random.seed(99)
    wanted = (random.getstate(), np.random.get_state()[1].tolist())
    resumed = made()
    resumed.load_state_dict(state)
    assert [batch[0].tolist() for batch in resumed] == rest
    assert (random.getstate(), np.random.get_state()[1].tolist()) == wanted


@pytest.mark.slow
def test_workers_go_on_too():
    def made():
        return D.DataLoader(DATA, BATCH, sampler=D.RandomSampler(DATA, generator=generator()), num_workers=2)

    state, rest = epochs(made(), (1, 3))
    resumed = made()
    resumed.load_state_dict(state)
    assert taken(resumed, len(rest)) == rest


def test_an_iterator_as_sampler_cannot_go_on_from_its_second_loop():
    loader = D.DataLoader(DATA, BATCH, sampler=iter(range(N)))
    next(iter(loader))
    loader.state_dict()
    next(iter(loader))
    with pytest.warns(UserWarning, match="2 loops over an iterator, a range_iterator"):
        state = loader.state_dict()
    with pytest.raises(errors.DataError, match="sbpjax.utils.data.Sampler"):
        D.DataLoader(DATA, BATCH, sampler=iter(range(N))).load_state_dict(state)


def test_the_state_of_another_loader_is_refused():
    state = loaders()["numpy"]().state_dict()
    loader = D.DataLoader(DATA, BATCH)
    with pytest.raises(errors.DataError, match=r"states of sampler.source|batch_sampler.sampler.source"):
        loader.load_state_dict(state)
    assert [batch[0].tolist() for batch in loader][0] == [0, 1, 2]
