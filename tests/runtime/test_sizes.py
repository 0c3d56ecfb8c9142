"""Sizes that no machine has are refused, in words, where shapes are made: eager, on placements, traced, without data.

Each call runs in this process: before the check, XLA ended it.
"""

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax._core.runtime import host_limits, sizes
from sbpjax.errors import OpError, OutOfMemoryError

F = flow.nn.functional
HUGE, LARGE = 2**62, 2**45

CALLS = {
    "zeros": lambda: flow.zeros(HUGE),
    "zeros of a product": lambda: flow.zeros(2**31, 2**31, 4),
    "zeros beyond int64": lambda: flow.zeros(2**63),
    "zeros of 0 rows": lambda: flow.zeros(0, HUGE, 4),
    "full": lambda: flow.full((HUGE,), 7.5),
    "randn": lambda: flow.randn(HUGE),
    "randint": lambda: flow.randint(0, 5, (HUGE,)),
    "randperm": lambda: flow.randperm(HUGE),
    "arange": lambda: flow.arange(HUGE),
    "linspace": lambda: flow.linspace(0, 1, HUGE),
    "eye": lambda: flow.eye(2**40),
    "new_zeros": lambda: flow.ones(2).new_zeros(HUGE),
    "expand": lambda: flow.ones(1).expand(HUGE) + 1,
    "expand, read": lambda: flow.ones(1).expand(HUGE).numpy(),
    "repeat": lambda: flow.ones(2).repeat(HUGE),
    "pad": lambda: F.pad(flow.ones(2), (HUGE, HUGE)),
    "one_hot": lambda: F.one_hot(flow.tensor([0, 1]), HUGE),
    "outer": lambda: flow.ones(2**16).expand(2**40, 2**16) @ flow.ones(2**16, 2**40),
    "Linear": lambda: flow.nn.Linear(2**40, 2**40),
    "Embedding": lambda: flow.nn.Embedding(HUGE, 4),
    "in a program": lambda: flow.compile(lambda x: F.one_hot(x, HUGE).sum())(flow.tensor([0, 1])),
    "without data": lambda: flow.zeros(HUGE, device="meta"),
    "an op without data": lambda: flow.zeros(4, device="meta").repeat(HUGE),
    "more than the machine has": lambda: flow.ones(LARGE),
    "arange, more than the machine has": lambda: flow.arange(LARGE),
    "a result, more than the machine has": lambda: flow.ones(2).repeat(LARGE),
    "a result of random numbers": lambda: flow.rand(LARGE),
    "rows of nothing": lambda: flow.ones(1, 0).repeat(2**31, 1),
    "rows of nothing, a view": lambda: flow.ones(1, 0).expand(2**31, 0).numpy(),
    "rows of nothing, in a program": lambda: flow.compile(lambda x: x.repeat(2**31, 1))(flow.ones(1, 0)),
    "layers": lambda: flow.nn.GRU(2, 3, num_layers=2**40),
    "copies of a layer": lambda: flow.nn.TransformerEncoder(flow.nn.Linear(2, 2), 2**40),
    "a padded image": lambda: F.conv2d(flow.ones(1, 4, 4, 4), flow.ones(4, 4, 2, 2), None, 2**31 - 1, 2**33, 2**31),
    "a stretched image": lambda: F.conv_transpose2d(
        flow.ones(1, 4, 5, 4), flow.ones(4, 2, 2, 2), None, 2**31 - 1, 2**32, dilation=2**31 - 1
    ),
    "the result of a program": lambda: flow.compile(lambda x: x.new_ones(LARGE))(flow.ones(2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_machine_has_so_many_bytes(name):
    with pytest.raises(OutOfMemoryError) as caught:
        CALLS[name]()
    assert isinstance(caught.value, RuntimeError)
    assert "seen: " in str(caught.value) and "\n  fix:  " in str(caught.value)


@pytest.mark.parametrize("sbp", [flow.sbp.split(0), flow.sbp.broadcast, flow.sbp.partial_sum])
@pytest.mark.parametrize("size", [HUGE, LARGE])
def test_a_global_tensor_of_so_many_bytes_is_refused(sbp, size):
    place = flow.placement("cpu", [0, 1])
    with pytest.raises(OutOfMemoryError):
        flow.zeros(size, placement=place, sbp=sbp)
    x = flow.zeros(4, placement=place, sbp=sbp)
    with pytest.raises(OutOfMemoryError):
        x.repeat(size)


def test_a_graph_names_the_op_whose_result_has_so_many_bytes():
    class Graph(flow.nn.Graph):
        def build(self, x):
            return F.one_hot(x, HUGE).sum()

    with pytest.raises(OutOfMemoryError, match="one_hot"):
        Graph()(flow.tensor([0, 1]))


def test_a_view_of_any_size_is_made_and_not_read():
    assert flow.ones(1).expand(HUGE).shape == (HUGE,)


def test_copies_on_all_ranks_count(monkeypatch):
    monkeypatch.setattr(host_limits, "free_bytes", lambda: 3 << 30)
    place = flow.placement("cpu", [0, 1, 2, 3])
    with pytest.raises(OutOfMemoryError, match=r"on 4 ranks: 4.0 GiB"):
        flow.ones(1 << 28, placement=place, sbp=flow.sbp.broadcast)


def test_intermediate_values_of_a_program_count(monkeypatch):
    program = flow.compile(lambda x: (x.repeat(1 << 28).cumsum(0)[-1], x.flip(0)))
    monkeypatch.setattr(host_limits, "free_bytes", lambda: 1 << 30)
    with pytest.raises(OutOfMemoryError, match="results and intermediate values: [2-8].0 GiB"):
        program(flow.ones(2))


def test_results_without_memory_are_refused_before_a_program_is_compiled():
    program = flow.compile(lambda x, w: flow.conv_transpose1d(x, w, stride=2**31 - 1))  # compiles for minutes
    with pytest.raises(OutOfMemoryError, match="the results: 32.0 GiB"):
        program(flow.ones(1, 4, 5), flow.ones(4, 1, 2))


def test_a_program_that_fails_later_is_worded_where_its_value_is_read(compiled_ops):
    inputs = [flow.randn(s, dtype=flow.float64) for s in ((2, 4, 5), (2, 2, 3))]
    x = F.conv1d(*inputs, stride=2**32, padding=2**48, groups=2)  # pads in an array of its own
    for read in (x.numpy, lambda: (x + 1).tolist(), lambda: x.sum().item(), lambda: str(x)):
        with pytest.raises(OutOfMemoryError, match="Out of memory"):
            read()


WINDOWS = {
    "conv2d": lambda n: F.conv2d(flow.ones(1, 1, 4, 4), flow.ones(1, 1, 1, 1), dilation=n),
    "max_pool1d": lambda n: F.max_pool1d(flow.ones(1, 5), 3, stride=n, padding=1),
    "unfold": lambda n: F.unfold(flow.ones(1, 1, 4, 4), 2, padding=(0, n)),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("made", [lambda f: f, flow.compile], ids=["eager", "compiled"])
def test_a_window_beyond_64_bits_is_refused(name, made):
    with pytest.raises(OpError, match="Overflow when unpacking long"):
        made(lambda x: WINDOWS[name](2**63) + x)(flow.ones(1))


def test_patches_of_very_many_cells_are_refused():
    with pytest.raises(OutOfMemoryError):
        F.unfold(flow.ones(2, 2, 4, 5), (2, 2**62), padding=(0, 2**62))


@pytest.mark.parametrize("draw", [flow.rand, flow.randn, lambda *s: flow.normal(0.0, 1.0, s)])
def test_no_random_numbers_take_no_memory(draw):
    state = flow.get_rng_state()
    assert draw(2**40, 0).shape == (2**40, 0)
    assert not np.array_equal(flow.get_rng_state().numpy(), state.numpy())  # a draw like any other


def test_a_small_tensor_does_not_ask_the_system(monkeypatch):
    monkeypatch.setattr(host_limits, "free_bytes", lambda: pytest.fail("asked"))
    flow.ones(1 << 10)


def test_bodies_of_equations_are_looked_at():
    branches = lambda: np.float64(0), lambda: jax.numpy.ones(HUGE).sum()
    closed = jax.make_jaxpr(lambda x: jax.lax.cond(x > 0, *branches))(1)
    with pytest.raises(OutOfMemoryError):
        sizes.check_equations("f", closed.eqns)


@pytest.mark.parametrize("error", [MemoryError("no"), RuntimeError("RESOURCE_EXHAUSTED")])
def test_an_error_of_numpy_without_memory_is_worded(error):
    found = sizes.out_of_memory("f(x)", "x", error)
    assert (found is not None) == isinstance(error, MemoryError)
