"""What all metrics have in common: bit by bit the same, however samples are dealt to batches, ranks and processes."""

import json
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import TrainError
from sbpjax.train.batches import PaddedBatches, take_samples
from sbpjax.train.evaluation import Accuracy, Metric
from sbpjax.train.evaluation.metric import _decode_state, _encode_state, predictions_and_targets
from sbpjax.utils.data import DataLoader, GlobalLoader, TensorDataset
from tests.distributed.running import launch
from tests.train.evaluation.dealt import METRICS, SAMPLES, samples, taken


def alone(kind):
    return taken(kind, np.arange(SAMPLES), SAMPLES).compute()


@pytest.mark.parametrize("kind", METRICS)
def test_the_same_bits_however_samples_are_dealt(kind, monkeypatch):
    whole, rng = alone(kind), np.random.default_rng(0)
    for ranks, batch in ((1, 1), (1, 8), (2, 5), (4, 3), (37, 1)):
        order = rng.permutation(SAMPLES)
        parts = [taken(kind, order[rank::ranks], batch) for rank in range(ranks)]  # uneven, uneven last batches
        sent = [json.loads(json.dumps(_encode_state(part._state))) for part in parts]
        metric = METRICS[kind]()
        monkeypatch.setattr(
            metric, "_parts", lambda sent=sent, metric=metric: [_decode_state(s, metric.zero()) for s in sent]
        )
        assert metric.compute() == whole, (ranks, batch)
    assert all(np.isfinite(value) for value in whole.values())


@pytest.mark.parametrize("kind", METRICS)
def test_reset_forgets(kind):
    metric = taken(kind, np.arange(10), 5)
    before = metric.compute()
    metric.reset()
    predicted, actual = samples(kind)
    metric.update(predicted[:10], (None, actual[:10]))
    assert metric.compute() == before != alone(kind)


@pytest.mark.slow
def test_two_processes(tmp_path):
    script = Path(__file__).with_name("dealt.py")
    code, out, err = launch("--nproc_per_node", 2, "--cpu_devices", 2, script, tmp_path / "found")
    assert code == 0 and out.count("rank passed") == 2, f"{out[-2000:]}\n{err[-6000:]}"
    for rank in (0, 1):
        assert json.loads((tmp_path / f"found.{rank}").read_text()) == {kind: alone(kind) for kind in METRICS}


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_shorter_last_batch_counts_once_on_a_mesh(ranks):
    predicted, actual = samples("accuracy")
    padded = PaddedBatches(SAMPLES, 8)
    loader = DataLoader(TensorDataset(flow.tensor(predicted), flow.tensor(actual)), batch_sampler=padded)
    metric = Accuracy(k=(1, 3))
    place = flow.placement("cpu", list(range(ranks)))
    for number, batch in enumerate(GlobalLoader(loader, place, flow.sbp.split(0))):
        real = padded.real(number)
        metric.update(take_samples(batch[0], real), take_samples(batch, real))
    assert metric.compute() == alone("accuracy") and metric._state["all"] == SAMPLES


def test_what_is_told():
    x, y, z = (np.array([i]) for i in range(3))
    assert predictions_and_targets(x, (y, z)) == (x, z)
    assert predictions_and_targets((x, y), {"tokens": y, "targets": z}) == (x, z)
    assert predictions_and_targets([x], {"labels": z}) == (x, z)
    assert predictions_and_targets(["text"], (None, ["told"])) == (["text"], ["told"])
    with pytest.raises(TrainError, match="a batch with tokens, pairs\n  rule: .*'targets' or 'labels'"):
        predictions_and_targets(x, {"tokens": y, "pairs": z})
    metric = Accuracy(select=lambda outputs, batch: (outputs[1], batch["pairs"]))
    metric.update((None, np.array([[0.0, 1.0]])), {"pairs": np.array([1])})
    assert metric.compute() == {"accuracy": 1.0}


def test_a_base_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="Metric has no zero\\(\\)"):
        Metric()
