"""StopOnInterrupt: the first interrupt ends a run after its step, the second one immediately."""

import signal

import pytest

from sbpjax.train import Checkpoints, Hook
from sbpjax.train.hooks.interrupt import StopOnInterrupt
from tests.train.cases import trainer


class InterruptAt(Hook):
    """Send the process some interrupts before a step."""

    def __init__(self, step, times):
        self.step, self.times = step, times

    def before_step(self, trainer):
        if trainer.step == self.step:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)


@pytest.fixture
def python_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_the_first_interrupt_stops_after_the_step_and_saves(python_handler, tmp_path):
    hook, saves = StopOnInterrupt(), Checkpoints(every=100)
    run = trainer(tmp_path, steps=6, hooks=[hook, InterruptAt(2, 1), saves])
    run.fit()
    assert hook.interrupted and run.step == 3 and saves.manager(run).latest() == 3


def test_the_second_interrupt_is_immediate(python_handler, tmp_path):
    run = trainer(tmp_path, steps=6, hooks=[StopOnInterrupt(), InterruptAt(2, 2)])
    with pytest.raises(KeyboardInterrupt):
        run.fit()
    assert run.step == 2


def test_a_handler_of_the_program_stays(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = trainer(tmp_path, steps=3, hooks=[StopOnInterrupt(), InterruptAt(1, 1)])
        run.fit()
        assert run.step == 3 and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
