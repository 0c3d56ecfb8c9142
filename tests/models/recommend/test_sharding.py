"""What a step of Wide & Deep moves, laid out by hand and by the planner."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, nn, optim
from sbpjax.models import recommend

CONFIG = recommend.RecommendConfig(features=(50_000, 20_000, 3000), dense=4, dim=16)
ROWS = 512
BY_HAND = {"rows": {"fsdp": 8}, "columns": {"tensor": 8}, "copies": {"data": 8}}


class Step(nn.Graph):
    def __init__(self, model, auto):
        super().__init__()
        self.model = model
        groups = [{"params": model.table_parameters(), "is_sparse": True}, {"params": model.dense_parameters()}]
        self.add_optimizer(optim.Adam(groups, lr=1e-3))
        if auto:
            self.config.enable_auto_parallel(True, placement=flow.placement.all("cpu"))

    def build(self, dense, ids, labels):
        loss = self.model.loss(dense, ids, labels)
        loss.backward()
        return loss


def batch():
    rng = np.random.default_rng(0)
    ids = np.stack([rng.integers(0, size, ROWS) for size in CONFIG.features], 1)
    dense, labels = rng.normal(size=(ROWS, CONFIG.dense)), rng.integers(0, 2, ROWS)
    return [flow.tensor(a) for a in (dense.astype(np.float32), ids, labels.astype(np.float32))]


def bytes_of(step, given):
    """Return the planned bytes of a step; those of the compiled program differ by less than a thousandth."""
    traffic = step.traffic(*given)
    assert abs(traffic.difference()) < 1e-3
    return sum(traffic.planned.values())


@pytest.mark.exhaustive  # four compilations
def test_the_planner_moves_hardly_more_than_the_best_layout_by_hand():
    given, by_hand = batch(), {}
    for name, axes in BY_HAND.items():
        model = models.parallelize(recommend.WideDeep(CONFIG), models.Parallel(**axes, device="cpu"))
        place = model.wide_dense.weight.placement
        whole, split = flow.sbp.broadcast, flow.sbp.split(0)
        sbp = [whole if name == "columns" else split, *[whole] * (len(place.hierarchy) - 1)]
        by_hand[name] = bytes_of(Step(model, False), [t.to_global(place, sbp) for t in given])
    step = Step(recommend.WideDeep(CONFIG), True)
    # It weighs launches, too: a layout that moves a little more in fewer collectives is as good.
    assert bytes_of(step, given) <= 1.02 * min(by_hand.values())
