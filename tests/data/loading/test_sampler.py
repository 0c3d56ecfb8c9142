"""Samplers: their orders are permutations, functions of the seed, and can be resumed."""

import collections

import numpy as np
import pytest
import torch.utils.data as theirs

import sbpjax as flow
from sbpjax.data.loading.sampler import start_order
from sbpjax.utils import data


def test_orders():
    flow.manual_seed(0)
    assert list(data.SequentialSampler(range(4))) == [0, 1, 2, 3]
    sampler = data.RandomSampler(range(50))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == list(range(50)) and sorted(second) == list(range(50)) and first != second
    flow.manual_seed(0)
    assert list(data.RandomSampler(range(50))) == first
    third = list(sampler)
    sampler.resume(sampler.last_seed)
    assert list(sampler) == third and list(sampler) != third
    assert sorted(data.SubsetRandomSampler([7, 8, 9])) == [7, 8, 9]
    long = list(data.RandomSampler(range(3), num_samples=7))
    assert len(long) == 7 and sorted(long[:3]) == sorted(long[3:6]) == [0, 1, 2]
    own = flow.Generator().manual_seed(3), flow.Generator().manual_seed(3)
    assert list(data.RandomSampler(range(9), True, 20, own[0])) == list(data.RandomSampler(range(9), True, 20, own[1]))


def test_weights():
    flow.manual_seed(0)
    drawn = collections.Counter(data.WeightedRandomSampler([0.0, 1.0, 3.0], 4000))
    assert drawn[0] == 0 and drawn[2] / drawn[1] == pytest.approx(3, rel=0.15)
    assert sorted(data.WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False)) == [0, 1, 2]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [9, 10, 12])
def test_batches_and_shares_equal_torchs(n, drop_last):
    mine, other = (p.BatchSampler(range(n), 5, drop_last) for p in (data, theirs))
    assert list(mine) == list(other) and len(mine) == len(other)
    shares = []
    for rank in range(4):
        options = {"num_replicas": 4, "rank": rank, "shuffle": False, "drop_last": drop_last}
        mine = data.DistributedSampler(range(n), **options)
        other = theirs.DistributedSampler(range(n), **options)
        assert list(mine) == list(other) and len(mine) == len(other)
        shuffled = data.distributed.DistributedSampler(range(n), 4, rank, drop_last=drop_last, seed=1)
        shuffled.set_epoch(3)
        shares += list(shuffled)
    assert set(shares) == set(range(n)) or drop_last
    assert len(set(shares)) == (n if not drop_last else len(shares))


def test_an_epoch_has_an_order_of_its_own():
    sampler = data.DistributedSampler(range(100), 2, 0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    assert data.DistributedSampler(range(4)).num_replicas == 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: data.BatchSampler(range(3), 0, False), "batch_size should be a positive integer"),
        (lambda: data.BatchSampler(range(3), 2, 1), "drop_last should be a boolean"),
        (lambda: data.WeightedRandomSampler([[1.0]], 2), "weights should be a 1d sequence"),
        (lambda: data.WeightedRandomSampler([-1.0, 2.0], 3), "not negative"),
        (lambda: data.WeightedRandomSampler([float("nan"), 2.0], 3), "finite"),
        (lambda: data.WeightedRandomSampler([float("inf"), 2.0], 3), "finite"),
        (lambda: data.WeightedRandomSampler([0.0, 0.0], 3), "greater than 0"),
        (lambda: data.WeightedRandomSampler([], 3), "greater than 0"),
        (lambda: data.WeightedRandomSampler([1.0, 0.0], 2, replacement=False), "comes once"),
        (lambda: data.DistributedSampler(range(3), 2, 2), r"should be in the interval \[0, 1\]"),
    ],
)
def test_bad_arguments(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_a_drawn_seed_is_of_the_stream():
    a, b = flow.Generator().manual_seed(5), flow.Generator().manual_seed(5)
    assert a.draw() == b.draw() and a.draw() != a.draw() and 0 <= a.draw() < 2**63
    b.draw()
    a.set_state(b.get_state())
    assert a.draw() == b.draw()
    assert np.unique([a.draw() for _ in range(100)]).size == 100


def samplers(n):
    yield data.SequentialSampler(range(n))
    yield data.RandomSampler(range(n))
    yield data.RandomSampler(range(n), True, 2 * n + 1)
    yield data.RandomSampler(range(n), num_samples=2 * n + 1)
    yield data.BatchSampler(data.RandomSampler(range(n)), 4, False)
    yield data.BatchSampler([5, 3, 1, 0, 2, 4], 4, True)  # no sampler of ours: its items are gone through
    yield [[0, 1], [2], [3, 4]]


@pytest.mark.parametrize("sampler", list(samplers(10)), ids=lambda sampler: type(sampler).__name__)
def test_an_order_from_a_place_on(sampler):
    for place in range(25):
        flow.manual_seed(3)
        whole = list(sampler)
        flow.manual_seed(3)
        assert list(start_order(sampler, place)) == whole[place:]


def test_a_subclass_with_its_own_order_keeps_it():
    class Backwards(data.SequentialSampler):
        def __iter__(self):
            return iter(range(len(self) - 1, -1, -1))

    assert list(start_order(Backwards(range(5)), 2)) == [2, 1, 0]


def test_resuming_far_along_asks_for_no_index_before():
    class Counted(data.SequentialSampler):
        pass

    class Far:
        def __len__(self):
            return 10**12

        def __getitem__(self, index):
            return index

    loader = data.DataLoader(Far(), batch_sampler=data.BatchSampler(Counted(Far()), 8, True))
    assert next(iter(loader)).tolist() == list(range(8))
    loader.load_state_dict(loader.state_dict() | {"batches": 10**11})
    assert next(iter(loader)).tolist() == [8 * 10**11 + i for i in range(8)]
