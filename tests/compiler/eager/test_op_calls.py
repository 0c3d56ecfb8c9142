"""Calls without a program yet: bounded programs of ever new shapes, values, traces, and a warning about a line."""

import contextlib
import gc
import logging

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax._core.compiler.eager import op_calls, recompile_log
from sbpjax._core.ops import elementwise
from sbpjax._core.runtime.lru_cache import LRUCache
from sbpjax._core.tensor.dispatch import op as ops

pytestmark = pytest.mark.usefixtures("compiled_ops")


def _forget(op):
    """Let an op be as in a new process."""
    op.__init__(op.fn, op.static)
    for name in ("call", "misses"):
        with contextlib.suppress(AttributeError):  # an op that was not called has none
            delattr(op, name)


def step(n):
    x = flow.tensor(np.arange(2 * n, dtype="f").reshape(n, 2), requires_grad=True)
    y = flow.sinh(x)  # the only line of this file that calls it
    y.sum().backward()
    return y, x.grad


def test_programs_of_ever_new_shapes_are_bounded_and_right(monkeypatch, caplog):
    table = LRUCache(8)
    monkeypatch.setattr(op_calls, "_programs", table)
    monkeypatch.setattr(recompile_log, "_programs", LRUCache(100))
    monkeypatch.setattr(recompile_log, "_said", set())
    monkeypatch.setattr(recompile_log, "WARN_AT_SHAPES", 20)
    step(1)  # makes `flow.sinh`, which keeps its op; the bounded table of ops may have made another one since
    all_ops = [o for o in gc.get_objects() if type(o) is ops.Op and o.fn is elementwise.sinh]
    for op in all_ops:
        _forget(op)
    with caplog.at_level(logging.WARNING, logger="sbpjax"):
        for n in [*range(1, 31), 30, 29, 2]:
            y, grad = step(n)
            expected = np.arange(2 * n, dtype="f").reshape(n, 2)
            np.testing.assert_allclose(y.detach().numpy(), np.sinh(expected), rtol=1e-5)
            np.testing.assert_allclose(grad.numpy(), np.cosh(expected), rtol=1e-5)
    op = max(all_ops, key=lambda one: one.programs)
    assert op.programs >= 30
    assert 0 < len(table.everything()) <= 8
    assert len(op.entries) <= ops._MAX_ENTRIES + 1
    messages = [r.getMessage() for r in caplog.records if "test_op_calls.py" in r.getMessage()]
    assert len(messages) == 2  # the line of the op, and the one that checks; each once, though its backward has as many
    assert "has compiled 10 shapes of sinh, now [9, 2]" in messages[0]


def test_an_op_of_many_shapes_is_a_part_of_traced_programs(monkeypatch):
    monkeypatch.setattr(op_calls, "MANY", 0)
    op = ops.op_of(elementwise.sinh)
    op.call(np.ones(3, "f"))
    x = flow.tensor([0.5, 1.0])
    traced = flow.compile(lambda x: flow.sinh(x).exp())
    np.testing.assert_allclose(traced(x).numpy(), np.exp(np.sinh([0.5, 1.0])), rtol=1e-6)
    assert "sinh" in str(jax.make_jaxpr(op.call)(np.ones(2, "f")))


def test_programs_of_changing_attributes_are_bounded(monkeypatch):
    table = LRUCache(6)
    monkeypatch.setattr(ops, "_OPS", table)
    x = flow.arange(40)
    for i in range(1, 30):
        assert x[:i].sum().item() == i * (i - 1) // 2
        assert len(table.everything()) <= 6


@pytest.mark.exhaustive
def test_memory_stays_where_it_is(monkeypatch):
    """400 shapes of four programs each: 1.5 MB a program without a bound, with it what the table holds."""
    monkeypatch.setattr(op_calls, "_programs", LRUCache(64))
    monkeypatch.setattr(ops, "_OPS", LRUCache(64))
    resident = []
    for n in range(1, 401):
        step(n)
        if n % 100 == 0:
            with open("/proc/self/statm") as file:
                resident.append(int(file.read().split()[1]) * 4096)
    assert resident[3] - resident[1] < 150e6
