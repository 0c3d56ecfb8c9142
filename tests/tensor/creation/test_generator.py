"""Streams of random keys: a trace in one thread is none of another thread's business."""

import sys
import threading

import jax
import pytest

import sbpjax as flow
from sbpjax._core.tensor.creation.generator import default_generator


class Noisy(flow.nn.Graph):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def build(self, x):
        for i in range(30):
            x = (x * self.factor).tanh() + i
        return (x + flow.randn(4)).sum()


def test_a_thread_draws_from_the_seed_while_another_traces():
    flow.manual_seed(3)
    alone = [flow.rand(2).tolist() for _ in range(3)]
    flow.manual_seed(3)
    seen = []

    def draw():
        seen.extend(flow.rand(2).tolist() for _ in range(3))

    def trace(key):
        with default_generator.under_trace(key) as stream:
            first = default_generator.key()
            thread = threading.Thread(target=draw)
            thread.start()
            thread.join()
            second = default_generator.key()
            assert stream.drawn == 2
        return first, second

    keys = jax.jit(trace)(jax.random.key(5))
    assert seen == alone
    assert not (jax.random.key_data(keys[0]) == jax.random.key_data(keys[1])).all()


def test_a_trace_leaves_the_seed_s_stream_where_it_was():
    flow.manual_seed(3)
    expected = [flow.rand(2).tolist() for _ in range(2)]
    flow.manual_seed(3)
    got = [flow.rand(2).tolist()]
    jax.make_jaxpr(lambda key: _drawn_under(key))(jax.random.key(1))
    got.append(flow.rand(2).tolist())
    assert got == expected and default_generator.trace is None


def _drawn_under(key):
    with default_generator.under_trace(key):
        return default_generator.key()


def _rounds(count):
    """Draw in one thread, one after the other, while another builds graphs; return how many keys came twice."""
    errors, draws, stop = [], [], threading.Event()

    def eager():
        try:
            while len(draws) < count:
                draws.append(default_generator.draw())
                if len(draws) % 100 == 0:
                    flow.randn(3).sum().item()
        except Exception as error:
            errors.append(error)
        stop.set()

    def graphs():
        factor = 0.0
        try:
            while not stop.is_set():
                factor += 1.0
                Noisy(factor)(flow.ones(4)).item()
        except Exception as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        threads = [threading.Thread(target=f) for f in (eager, graphs)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    finally:
        sys.setswitchinterval(before)
    assert not errors
    return len(draws) - len(set(draws))


def test_drawing_beside_a_tracing_thread():
    assert _rounds(20_000) == 0


@pytest.mark.exhaustive
def test_drawing_beside_a_tracing_thread_for_long():
    assert _rounds(100_000) == 0


def test_two_threads_never_draw_the_same_key():
    found = [[], []]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=lambda k=k: found[k].extend(flow.default_generator.draw() for _ in range(3000)))
            for k in (0, 1)
        ]
        [t.start() for t in threads]
        [t.join() for t in threads]
    finally:
        sys.setswitchinterval(before)
    assert len(set(found[0] + found[1])) == 6000
