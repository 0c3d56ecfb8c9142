"""Batches of a run: which samples they have, and on which stage they lie."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models
from sbpjax.errors import TrainError
from sbpjax.train.batches import (
    PaddedBatches,
    evaluation_loader,
    find_first_tensor,
    global_loader,
    take_samples,
    to_stages,
)
from tests.train.cases import Points


def test_the_last_batch_is_filled_up():
    batches = PaddedBatches(5, 2)
    assert list(batches) == [[0, 1], [2, 3], [4, 0]] and [batches.real(i) for i in range(3)] == [2, 2, 1]
    assert len(PaddedBatches(5, 2, most=1)) == 1


def test_evaluations_see_every_sample_in_its_order():
    spec = models.Parallel(data=2, device="cpu")
    loader, batches = evaluation_loader(Points(5), 2, spec, None)
    found = [take_samples(x, batches.real(i)).numpy()[:, 0].tolist() for i, (x, _) in enumerate(loader)]
    points = Points(5)
    assert [one for batch in found for one in batch] == [float(points[i][0][0]) for i in range(5)]


def test_training_data_is_shuffled_unless_it_has_an_order():
    spec = models.Parallel(device="cpu")
    listed = [Points(32).sample(i) for i in range(32)]
    flow.manual_seed(0)
    ordered = next(iter(global_loader(Points(32), 32, spec, 0)))[0].numpy()
    shuffled = next(iter(global_loader(listed, 32, spec, 0)))[0].numpy()
    assert (ordered[:, 0] != shuffled[:, 0]).any() and sorted(ordered[:, 0]) == sorted(shuffled[:, 0])


def test_targets_go_to_the_stage_that_reads_them():
    spec = models.Parallel(data=2, pipeline=2, device="cpu")
    first, last = spec.placements
    x, y = spec.place([[1, 2], [3, 4]]), spec.place([[5, 6], [7, 8]])
    moved = to_stages([x, y], spec, frozenset(), -1)
    assert [part.placement for part in moved] == [first, last] and moved[1].tolist() == [[5, 6], [7, 8]]
    named = to_stages({"x": x, "y": y}, spec, frozenset({"x"}), -1)
    assert [part.placement for part in named.values()] == [first, last]
    assert to_stages([x, y], spec, frozenset(), 0) == [x, y]


def test_first_of_nested_parts():
    x = flow.ones(2)
    assert find_first_tensor({"a": ["text", x]}) is x


def test_parts_without_positions_are_whole_over_context():
    spec = models.Parallel(data=2, context=2, device="cpu")
    samples = [{"tokens": np.arange(8), "label": i} for i in range(8)]
    B, S = flow.sbp.broadcast, flow.sbp.split
    for loader in (global_loader(samples, 4, spec, 0), evaluation_loader(samples, 4, spec, None)[0]):
        batch = next(iter(loader))
        assert batch["tokens"].sbp == (S(0), S(1)) and batch["label"].sbp == (S(0), B)
    with pytest.raises(TrainError, match="data × fsdp × expert = 4 ranks"):
        global_loader(samples, 6, models.Parallel(data=2, expert=2, device="cpu"), 0)
