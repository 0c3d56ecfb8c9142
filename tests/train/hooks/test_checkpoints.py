"""Which checkpoints a run keeps."""

import pytest

from sbpjax.errors import TrainError
from sbpjax.train import Checkpoints, Evaluation
from tests.train.cases import Points, records, trainer


def test_the_last_and_the_best_are_kept(tmp_path):
    hook = Checkpoints(every=1, keep_last=2, keep_best=1, metric="validation/loss", better="max")
    made = trainer(tmp_path, hooks=[Evaluation(Points(8), every=1), hook])
    made.fit()
    metrics = {step: one["validation/loss"] for step, one in records(tmp_path).items()}
    best = max(metrics, key=metrics.__getitem__)
    assert hook.manager(made).best() == best and hook.manager(made).steps() == sorted({best, 5, 6})


def test_wrong_metrics_are_told(tmp_path):
    with pytest.raises(TrainError, match='metric="validation/loss"'):
        Checkpoints(keep_best=1)
    hook = Checkpoints(every=1, keep_best=1, metric="validatoin/loss")
    with pytest.raises(TrainError, match="fix:  metric='validation/loss'"):
        trainer(tmp_path, hooks=[Evaluation(Points(8), every=1), hook]).fit()
    with pytest.raises(TrainError, match='out="run7"'):
        trainer(hooks=[Checkpoints(every=1)]).fit()
