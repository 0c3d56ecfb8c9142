"""Ends of ``with`` blocks that a signal handler cannot divide."""

import contextlib
import os
import sys

import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax._core.runtime.context_exit import ContextExit
from sbpjax._core.tensor.handle.mode import mode
from sbpjax.sbp.placement import _SCOPE

PACKAGE = os.path.dirname(flow.__file__) + os.sep  # not JAX, also if its environment is in a folder of that name


class Stopped(BaseException):
    """What an interrupt raises."""


def interrupt_call(step, number):
    """Run a step and raise at the start of the library's call of that number; return whether the step ended before."""
    left = number

    def called(frame, event, arg):
        nonlocal left
        if frame.f_code.co_filename.startswith(PACKAGE):
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise Stopped

    before = sys.gettrace()
    sys.settrace(called)
    try:
        step()
    except Stopped:
        pass
    finally:
        sys.settrace(before)
    return left >= 0


def switches():
    """Return all that the contexts below may change."""
    return vars(mode) | {"devices": list(mode.devices), "scope": list(_SCOPE)}


def test_the_undoing_iterator_is_exhausted_and_the_error_goes_on():
    done = []

    class Context:
        def __enter__(self):
            return self

        __exit__ = ContextExit(lambda self: map(done.append, (1, 2, 3)))

    with pytest.raises(KeyError), Context():
        raise KeyError
    assert done == [1, 2, 3]


CONTEXTS = {
    "no_grad": flow.no_grad,
    "enable_grad": flow.enable_grad,
    "inference_mode": flow.inference_mode,
    "autocast": lambda: flow.autocast("cpu"),
    "abstract": flow.abstract,
    "device": lambda: flow.device("cpu"),
    "placement": lambda: flow.placement("cpu", [0, 1]),
    "global_mode": lambda: flow.utils.global_view.global_mode(
        True, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast
    ),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_an_interrupt_at_any_call_leaves_no_switch_set(name):
    context, before = CONTEXTS[name](), switches()

    def step():
        with context:
            pass

    number = 0
    while not interrupt_call(step, number):
        assert switches() == before, f"call {number}"
        number += 1
    assert number and switches() == before


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_context_may_be_entered_again_by_hand_and_on_a_stack(name):
    context, before = CONTEXTS[name](), switches()
    with context:
        inside = switches()
        with context:
            pass
        assert {**switches(), "devices": 0} == {**inside, "devices": 0}
    assert switches() == before
    context.__enter__()
    context.__exit__(None, None, None)
    assert switches() == before
    with pytest.raises(ZeroDivisionError), contextlib.ExitStack() as stack:
        stack.enter_context(context)
        raise ZeroDivisionError
    assert switches() == before


def test_an_interrupt_of_a_training_step_leaves_gradients_on():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    optimizer, x = optim.AdamW(model.parameters(), lr=0.1), flow.ones(8, 4)

    def step():
        model(x).square().mean().backward()
        optimizer.step()

    for _ in range(3):
        step()
    before, number = switches(), 0
    while not interrupt_call(step, number):
        assert switches() == before, f"call {number}"
        number += 1
    assert number > 100
