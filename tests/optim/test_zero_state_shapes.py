"""Optimizers whose state is not all of the parameters' shapes, under ZeRO and with layers rolled into a loop."""

import functools

import numpy as np
import pytest

from sbpjax import optim
from tests.graph.program.test_zero import Train

KINDS = {"nadam": optim.NAdam, "adafactor": optim.Adafactor, "asgd": optim.ASGD}


def train(kind, stage, scan):
    class Other(Train):
        def add_optimizer(self, optimizer):
            super().add_optimizer(KINDS[kind](self.net.parameters(), lr=0.01))

    return Other("dp", stage, scan=scan)


@functools.cache
def plain_losses(kind):
    return train(kind, 0, False).steps(3)


wide = functools.partial(pytest.param, marks=pytest.mark.exhaustive)
CASES = [("nadam", 1, True), ("adafactor", 3, True)]
MORE = [("nadam", 3, False), ("asgd", 2, True), ("adafactor", 1, False)]


@pytest.mark.parametrize("kind,stage,scan", [*CASES, *(wide(*case) for case in MORE)])
def test_losses_do_not_depend_on_the_stage(kind, stage, scan):
    np.testing.assert_allclose(train(kind, stage, scan).steps(3), plain_losses(kind), rtol=2e-5)
