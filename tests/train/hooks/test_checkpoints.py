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
        trainer(tmp_path, hooks=[Evaluation(Points(8), every=1), hook])
    hook = Checkpoints(every=1, keep_best=1, metric="validation/los")
    with pytest.raises(TrainError, match="fix:  metric='validation/loss'"):
        trainer(tmp_path, hooks=[hook, Evaluation(Points(8), every=2)]).fit()
    assert hook.manager(trainer(tmp_path)).steps() == [1, 2]
    with pytest.raises(TrainError, match='out="run7"'):
        trainer(hooks=[Checkpoints(every=1)]).fit()


@pytest.mark.parametrize("log_every", [1, 100])
def test_what_is_saved_before_the_first_evaluation_has_no_score(tmp_path, log_every):
    hook = Checkpoints(every=1, keep_last=None, keep_best=1, metric="validation/loss")
    made = trainer(tmp_path, hooks=[hook, Evaluation(Points(8), every=4)], log_every=log_every)
    made.fit()
    assert hook.manager(made).steps() == [1, 2, 3, 4, 5, 6] and hook.manager(made).best() in (5, 6)


def test_a_metric_that_nothing_makes_is_told_behind_the_last_step(tmp_path):
    hook = Checkpoints(every=1, keep_best=1, metric="other/accuracy")
    made = trainer(tmp_path, hooks=[Evaluation(Points(8), every=2), hook])
    with pytest.raises(TrainError, match="metric='other/accuracy'; there are .*validation/loss"):
        made.fit()
    assert 6 in hook.manager(made).steps()
