"""`detect_anomaly` finds the op whose backward gives a NaN, and the line of its forward."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.autograd import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from sbpjax.errors import AutogradError


@pytest.mark.parametrize("sbp", [None, flow.sbp.broadcast, flow.sbp.split(0)], ids=str)
def test_the_first_nan_names_the_op_and_the_line_of_its_forward(sbp):
    x = flow.zeros(8)
    if sbp is not None:
        x = x.to_global(flow.placement("cpu", [0, 1, 2, 3]), sbp)
    x.requires_grad_()
    with detect_anomaly():
        y = (x.sqrt() * 0).sum()  # the line
        with pytest.raises(AutogradError, match=r"(?s)backward through sqrt_backward.*test_anomaly\.py:18"):
            y.backward()


def test_a_function_of_the_users_is_looked_at():
    class Bad(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan")

    x = flow.ones(3, requires_grad=True)
    with detect_anomaly(), pytest.raises(RuntimeError, match="Bad"):
        Bad.apply(x).sum().backward()


def test_gradients_without_nan_are_as_without_detection():
    x = flow.arange(1.0, 5.0).requires_grad_()
    with detect_anomaly():
        (x.log() * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.log(x.numpy()) + 1, rtol=1e-6)


def test_nothing_is_looked_at_outside_or_without_check():
    x = flow.zeros(2, requires_grad=True)
    with detect_anomaly(check_nan=False):
        (x / x).sum().backward()
    (x / x).sum().backward()
    assert np.isnan(x.grad.numpy()).all()


def test_a_forward_outside_the_block_has_no_line():
    y = flow.zeros(2, requires_grad=True).sqrt() * 0
    with detect_anomaly(), pytest.raises(RuntimeError, match="run the forward inside detect_anomaly"):
        y.sum().backward()


def test_the_setting_is_for_a_block_or_for_good():
    with set_detect_anomaly(True):
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
        assert is_anomaly_enabled()
    assert not is_anomaly_enabled()
    set_detect_anomaly(True)
    try:
        assert is_anomaly_enabled()
    finally:
        set_detect_anomaly(False)


def test_a_graph_is_not_looked_at():
    class Step(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.linear = flow.nn.Linear(2, 2)

        def build(self, x):
            loss = (self.linear(x) * 0).sqrt().sum()
            loss.backward()
            return loss

    with detect_anomaly():
        assert Step()(flow.ones(1, 2)).item() == 0
