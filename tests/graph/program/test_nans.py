"""A graph under `jax.debug_nans`: the error says what to do, and the state is that of the step before."""

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.errors import NanError


class Step(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    def build(self, x):
        loss = (self.model(x).mean() * 1e-3 + x.mean()).log()
        loss.backward()
        return loss


@pytest.mark.parametrize("steps_before", [0, 1, 4])
@pytest.mark.parametrize("ranks", [None, [0, 1, 2, 3]], ids=str)
def test_a_nan_ends_the_step_and_the_state_is_as_before(steps_before, ranks):
    model, x = nn.Linear(3, 1), flow.full((4, 3), 5.0)
    if ranks is not None:
        where = flow.placement("cpu", ranks)
        model, x = model.to_global(where, flow.sbp.broadcast), x.to_global(where, flow.sbp.split(0))
    step = Step(model)
    for _ in range(steps_before):
        step(x)
    before = model.weight.numpy()
    with jax.debug_nans(True):
        for _ in range(2):
            with pytest.raises(NanError, match="parameters are those of the step before"):
                step(-10 * x)
        np.testing.assert_array_equal(model.weight.numpy(), before)
        assert np.isfinite(step(x).item())
    assert np.isfinite(step(x).item())
    assert not np.array_equal(model.weight.numpy(), before)


def test_an_eager_op_is_named_with_the_line():
    x = flow.tensor([1.0, -1.0])
    with jax.debug_nans(True), pytest.raises(NanError, match=r"(?s)^log \(at .*test_nans.py:\d+\).*invalid") as error:
        x.log()
    assert isinstance(error.value, FloatingPointError) and "float32[2]" in str(error.value)
