"""`tensor.exchange`: wherever a step is interrupted, its state is that of a whole number of steps."""

import os
import random
import signal
import threading
import time

import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.compiler.launch import Launcher
from tests.support import interrupts
from tests.support.interrupts import WARM, check, equal, interrupt_at, twins, whole_step, with_own_numbers

TRAININGS = [
    interrupts.eager,
    interrupts.eager_global,
    interrupts.eager_views,
    interrupts.on_two_places,
    interrupts.of_optax,
    interrupts.scaled,
    interrupts.averaged,
    interrupts.with_statistics,
    interrupts.lbfgs,
    interrupts.in_graph,
    interrupts.in_graph_global,
    interrupts.in_graph_divided,
    interrupts.in_graph_with_statistics,
    interrupts.in_graph_scaled,
    interrupts.in_graph_scheduled,
    interrupts.in_pipeline,
    interrupts.in_pipeline_of_one_batch,
]
RANDOM = 60  # interrupts of a training by a signal: 2,520 in all
# A generator that is interrupted as it is closed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.parametrize("training", [interrupts.eager, interrupts.in_graph], ids=lambda f: f.__name__)
def test_an_interrupt_at_any_line_leaves_a_whole_step(training):
    check(training)


@pytest.mark.parametrize("training", TRAININGS, ids=lambda f: f.__name__)
def test_an_interrupt_leaves_a_whole_step(training):
    check(training, every=53)


CHANGES = {
    "by value": lambda model, optimizer, scaler: nn.utils.clip_grad_value_(model.parameters(), 0.01),
    "by norm": lambda model, optimizer, scaler: nn.utils.clip_grad_norm_(model.parameters(), 0.01),
    "unscaled": lambda model, optimizer, scaler: scaler.unscale_(optimizer),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_interrupt_leaves_all_gradients_changed_or_none(change, compiled_ops):
    machine = interrupts.on_two_places()
    model, optimizer = machine.module, machine.optimizer

    def gradients():
        return {name: p.grad.numpy().copy() for name, p in model.named_parameters()}

    place, finished, seen = 0, False, []
    while not finished:
        machine.before()
        before, scaler = gradients(), flow.amp.GradScaler(16.0)
        finished = interrupt_at(lambda scaler=scaler: CHANGES[change](model, optimizer, scaler), place)
        seen.append(gradients())
        whole = equal(seen[-1], before)
        assert whole or all((seen[-1][name] != before[name]).any() for name in before), place
        assert change != "unscaled" or bool(scaler._stages) != whole, place  # it would be divided once more
        place += 1 if finished else 113
    assert not equal(seen[-1], before)
    assert all(equal(found, before) or equal(found, seen[-1]) for found in seen)


@pytest.mark.exhaustive
@pytest.mark.parametrize("training", TRAININGS, ids=lambda f: f.__name__)
def test_an_interrupt_at_any_instruction_leaves_a_whole_step(training):
    check(training)
    check(training, every=11, opcodes=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("training", [interrupts.eager, interrupts.on_two_places, interrupts.in_graph])
def test_an_interrupt_while_jax_prepares_a_program_leaves_a_whole_step(training, monkeypatch):
    """As in a first step, and with programs whose effects JAX looks after in Python."""
    monkeypatch.setattr(Launcher, "is_ready", lambda self, args: False)
    check(training, every=7, within="")


# ---------------------------------------------------------------------------------------------- at random moments


def until_interrupted(machine, number, after_s):
    """Take steps until a signal ends one; return whether it did."""
    sender = threading.Timer(after_s, os.kill, (os.getpid(), number))
    found = False
    try:
        sender.start()
        for _ in range(200):
            machine.before()
            machine.step()
            if not sender.is_alive():
                break
        sender.join()
        time.sleep(0.02)  # until the system has delivered it
    except (KeyboardInterrupt, SystemExit):
        found = True
    flow.set_grad_enabled(True)
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM, signal.SIGTERM])
@pytest.mark.parametrize("training", TRAININGS, ids=lambda f: f.__name__)
def test_random_interrupts_lose_and_tear_nothing(training, number, capsys):
    machine, twin = twins(training)
    for _ in range(WARM):
        whole_step(machine)
        expected = whole_step(twin)
    start, draw = time.perf_counter(), random.Random(int(number))
    whole_step(machine)
    per_step_s = time.perf_counter() - start
    kind, tried = SystemExit if number == signal.SIGTERM else KeyboardInterrupt, 0

    def handle(signum, frame):
        raise kind

    before = signal.signal(number, handle)
    try:
        while tried < RANDOM:
            tried += with_own_numbers(
                machine, lambda: until_interrupted(machine, number, draw.uniform(0, 3 * per_step_s))
            )
            found = with_own_numbers(machine, machine.state)  # raises if an array is lost
            for _ in range(250):
                if equal(found, expected):
                    break
                expected = whole_step(twin)
            assert equal(found, expected), f"torn by random interrupt {tried}"
    finally:
        signal.signal(number, before)
    with capsys.disabled():
        print(f"\n{training.__name__}, {number.name}: {tried} random interrupts, 0 lost, 0 torn")
