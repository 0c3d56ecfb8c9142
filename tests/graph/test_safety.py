"""Nothing leaks from recompiling, and Ctrl-C leaves parameters valid."""

import ctypes
import gc
import logging
import os
import resource
import signal
import threading
import weakref
from collections import Counter

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F
from tests.support.graphs import Train

RECOMPILES = {"local": 100, "global": 25}
PLACE = flow.placement("cpu", [0, 1])


def made(place=None):
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    if place is not None:
        net.to_global(place, "B")
    optimizer = flow.optim.Adam(net.parameters(), lr=0.001)
    return net, optimizer, Train(net, optimizer)


def live():
    """Return the number of arrays, and of objects of this package, that are alive."""
    gc.collect()
    own = Counter(type(o).__name__ for o in gc.get_objects() if str(type(o).__module__).startswith("sbpjax"))
    for name in ("Op", "Layout", "Step", "Strategy"):  # tables of shapes that were met: a few hundred bytes each
        del own[name]
    return len(jax.live_arrays()), own


def resident_bytes():
    ctypes.CDLL(None).malloc_trim(0)  # what the compiler freed goes back, or its holes count as a leak
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("place", RECOMPILES)
def test_recompiles_leak_nothing(place, caplog):
    caplog.set_level(logging.ERROR, logger="sbpjax.graph")
    net = nn.Linear(4, 2)
    if place == "global":
        net.to_global(PLACE, "B")
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.01))
    graph.config.set_max_programs(2)

    first = 6
    inputs = [flow.tensor(np.ones((rows, 4), np.float32)) for rows in range(first + RECOMPILES[place])]
    if place == "global":  # a conversion that takes a program on several processes, which is kept for the next one
        inputs = [x.to_global(PLACE, "B") for x in inputs]

    def run(rows):
        graph(inputs[rows])

    for rows in range(1, first):
        run(rows)
    programs = [weakref.ref(p) for p in graph._g.programs.values()]
    compiled = [weakref.ref(p.call) for p in graph._g.programs.values()]
    before, memory = live(), resident_bytes()
    for rows in range(first, first + RECOMPILES[place]):
        run(rows)
    after = live()
    assert all(ref() is None for ref in programs + compiled)
    assert after[0] == before[0]
    assert {k: n - before[1][k] for k, n in after[1].items() if n > before[1][k] + 2} == {}
    assert (resident_bytes() - memory) / RECOMPILES[place] < 1 << 19
    assert len(graph._g.programs) == 2


def interrupted(graph, x, when, monkeypatch):
    """Call a graph and have Ctrl-C arrive at a moment."""

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background was started without it

    def press():
        os.kill(os.getpid(), signal.SIGINT)

    if when == "build":
        monkeypatch.setattr(type(graph), "build", lambda self, x: (press(), self.model(x).square().mean())[1])
    else:
        from sbpjax.graph.program.program import Program

        lower = Program.lower
        monkeypatch.setattr(Program, "lower", lambda self: (press(), lower(self))[1])
    with pytest.raises(KeyboardInterrupt):
        graph(x)
        for _ in range(1000):  # a signal is delivered between two instructions
            pass
    monkeypatch.undo()


@pytest.mark.parametrize("when", ["build", "compile"])  # a step: `tests/tensor/storage/test_exchange.py`
def test_an_interrupt_leaves_parameters_valid(when, monkeypatch):
    net, _, graph = made()
    x = flow.ones(3, 4)
    before = [p.numpy() for p in net.parameters()]
    interrupted(graph, x, when, monkeypatch)
    for p, value in zip(net.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), value)
    assert all(p.grad is None and p.requires_grad for p in net.parameters())
    first = graph(x).item()
    assert graph(x).item() < first
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_graph_runs_in_another_thread():
    _, _, graph = made()
    results = []
    thread = threading.Thread(target=lambda: results.extend(graph(flow.ones(2, 4)).item() for _ in range(2)))
    thread.start()
    thread.join()
    assert results[1] < results[0]


def test_a_program_that_fails_while_it_runs_leaves_the_next_call_possible():
    net, _, graph = made()
    x = flow.ones(2, 4)
    graph(x)
    program = graph.program
    compiled, program._compiled = program._compiled, lambda *arrays: (_ for _ in ()).throw(RuntimeError("device lost"))
    before = [p.numpy() for p in net.parameters()]
    with pytest.raises(RuntimeError, match="device lost"):
        graph(x)
    program._compiled = compiled
    for p, value in zip(net.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), value)
    graph(x)


def test_losses_need_no_wait():
    _, _, graph = made()
    losses = [graph(flow.ones(2, 4)) for _ in range(5)]
    values = [loss.item() for loss in losses]
    assert values == sorted(values, reverse=True)
    assert F.relu(losses[0]).item() == values[0]
