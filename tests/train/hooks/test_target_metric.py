"""A run that misses its score fails."""

import pytest

from sbpjax.errors import TrainError
from sbpjax.train import Evaluation, TargetMetric
from tests.train.cases import Points, trainer


def run(goal):
    trainer(steps=2, hooks=[Evaluation(Points(8)), goal]).fit()


def test_goals():
    run(TargetMetric("validation/loss", at_most=100.0))
    run(TargetMetric("validation/loss", at_least=0.0))
    with pytest.raises(TrainError, match="validation/loss of at most 0.001"):
        run(TargetMetric("validation/loss", at_most=1e-3))
    with pytest.raises(TrainError, match="validation/loss of at least 100"):
        run(TargetMetric("validation/loss", at_least=100.0))
    with pytest.raises(TrainError, match="validation/los is None"):
        run(TargetMetric("validation/los", at_most=1.0))
