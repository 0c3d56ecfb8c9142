"""Backwards that another thread compiles while the forward goes on: which, when, and with what values."""

import os
import subprocess
import sys
import threading
from collections import deque

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.compiler.eager import background_compile
from sbpjax._core.compiler.eager.background_compile import BackgroundCompile
from sbpjax._core.tensor.dispatch.op import Op, entry_of

X = np.linspace(-1, 1, 12, dtype="f").reshape(3, 4)
pytestmark = pytest.mark.usefixtures("compiled_ops")


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(background_compile, "_expected", True)


@pytest.fixture
def busy(monkeypatch, compilations):
    """Let other threads look busy; those of the tests before have ended, since they count down when they do."""
    with compilations:
        monkeypatch.setattr(background_compile, "_threads", 1)


@pytest.fixture
def compiled():
    """Return the list of (event's program, thread) of all compilations from here on."""
    found = []

    def listen(event, duration, fun_name="", **_):
        if event.endswith("backend_compile_duration"):
            found.append((fun_name, threading.current_thread().name))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    jax.monitoring.unregister_event_duration_listener(listen)


def recorded(fn, *arrays):
    """Return an op that ran, and its backward's entry for all inputs."""
    op = Op(fn)
    op.call(*arrays)
    return op, entry_of(op, tuple(range(len(arrays))), tuple(jax.typeof(jnp.asarray(a)) for a in arrays))


def test_a_backward_is_compiled_once_and_by_another_thread(two_cores, compiled):
    def sine_times(x, y):
        return jnp.sin(x) * y

    op, entry = recorded(sine_times, X, X)
    entry.first.misses.ahead._done.wait(60)
    gx, gy = entry.first.call(X, X, np.ones_like(X))
    np.testing.assert_allclose(gx, np.cos(X) * X, rtol=1e-5)
    np.testing.assert_allclose(gy, np.sin(X), rtol=1e-5)
    assert entry.first.misses.ahead is None
    assert [thread for name, thread in compiled if "sine_times_backward" in name] == ["sbpjax-compile"]


def test_a_call_that_comes_before_the_thread_compiles_by_itself(two_cores, compiled, busy):
    def own_tanh(x):
        return jnp.tanh(x)

    op, entry = recorded(own_tanh, X)
    waiting = entry.first.misses.ahead
    assert waiting in background_compile._waiting
    entry.first.call(X, np.ones_like(X))
    assert waiting not in background_compile._waiting
    assert [thread for name, thread in compiled if "own_tanh_backward" in name] == ["MainThread"]


def test_statistics_have_no_gradient(two_cores):
    def batch_norm(x):
        return jnp.sin(x), x.sum(0)

    op, entry = recorded(batch_norm, X)
    assert entry.n_out == 2 and entry.diff_outs == (0,) and entry.first.misses.ahead is not None
    op, entry = recorded(lambda x: (jnp.sin(x), jnp.cos(x)), X)
    assert entry.diff_outs == (0, 1) and entry.first.misses.ahead is not None


@pytest.mark.parametrize("reason", ["no optimizer", "one core", "did not run", "in a trace"])
def test_nothing_is_compiled_that_may_not_be_wanted(two_cores, monkeypatch, reason):
    if reason == "no optimizer":
        monkeypatch.setattr(background_compile, "_expected", False)
    if reason == "one core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    op = Op(jnp.tanh)
    if reason != "did not run":  # as under `sbpjax.abstract()`
        op.call(X)
    entries = []

    def ask(x):
        entries.append(entry_of(op, (0,), (jax.typeof(jnp.asarray(X)),)))
        return x

    jax.make_jaxpr(ask)(X) if reason == "in a trace" else ask(X)
    assert entries[0].first.misses.ahead is None


def test_an_error_of_the_thread_is_raised_by_the_call(monkeypatch, busy):
    op = Op(lambda x: x.no_such_name)
    ahead = op.misses.ahead = BackgroundCompile(op.misses, [jax.ShapeDtypeStruct((3,), np.float32)], at_once=True)
    monkeypatch.setattr(background_compile, "_waiting", deque([ahead]))
    monkeypatch.setattr(background_compile, "_behind", deque([lambda: 1 / 0]))
    background_compile._compile_queued()
    monkeypatch.undo()
    with pytest.raises(AttributeError, match="no_such_name"):
        op.call(np.ones(3, "f"))


def test_a_training_step_has_the_same_gradients(two_cores, compiled):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.Hardswish(), nn.Flatten(), nn.Linear(45, 2))
    flow.optim.SGD(model.parameters(), lr=0.1)
    x = flow.randn(2, 2, 5, 5)
    first = flow.autograd.grad(model(x).sum(), list(model.parameters()))
    names = [name for name, _ in compiled if "backward" in name]
    assert len(names) == len(set(names)), names  # none in two forms
    assert {"jit(conv2d_backward)", "jit(batch_norm_backward)"} <= set(names)
    again = flow.autograd.grad(model(x).sum(), list(model.parameters()))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_process_that_ends_does_not_wait_for_what_nobody_will_call():
    code = """
import os, time
os.sched_getaffinity = lambda pid: {0, 1}
import sbpjax as flow
from sbpjax._core.compiler.eager import background_compile
background_compile.BackgroundCompile.compile = lambda self: (time.sleep(1), print("compiled"))
y = w = flow.randn(3, requires_grad=True)
flow.optim.SGD([w], lr=1.0)
for f in (flow.sin, flow.cos, flow.tanh, flow.sinh, flow.cosh, flow.exp):
    y = f(y)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.count("compiled") < 6 and "Traceback" not in done.stderr
