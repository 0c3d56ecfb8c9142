"""Constants and random numbers without a program per shape: the same bits, and how many programs a model costs."""

import numpy as np
import pytest

import sbpjax
from sbpjax import nn, sbp
from sbpjax._core.compiler.eager import op_calls
from sbpjax._core.functions.random import by_inverse_
from sbpjax._core.tensor.creation import host_constants
from sbpjax._core.tensor.storage.payload import payload
from sbpjax.errors import OpError
from sbpjax.nn import init


def split() -> dict:
    return {"placement": sbpjax.placement("cpu", range(4)), "sbp": sbp.split(0)}


@pytest.fixture(autouse=True)
def nothing_made(monkeypatch):
    """Start with no counts, and leave none of programs' counts behind."""
    monkeypatch.setattr(host_constants, "_made", host_constants.LRUCache(64))


def by_programs(monkeypatch):
    monkeypatch.setattr(host_constants, "_TIMES", 0)


def bits(x) -> bytes:
    return np.asarray(payload(x)).tobytes()


# ---------------------------------------------------------------------------------------------------------- constants


def test_constants_of_a_kind_are_filled_on_the_host_some_times_then_by_a_program(monkeypatch):
    monkeypatch.setattr(host_constants, "_TIMES", 4)
    calls = []
    original = host_constants.fill_on_host
    monkeypatch.setattr(host_constants, "fill_on_host", lambda *a: calls.append(original(*a)) or calls[-1])
    options = split()
    made = [sbpjax.full((5, 3), 2.5, **options) for _ in range(6)]
    assert [c is not None for c in calls] == [True] * 4 + [False] * 2
    assert all(x.sbp == made[0].sbp and x._array.sharding == made[-1]._array.sharding for x in made)
    assert all((x.numpy() == 2.5).all() for x in made)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "bool", "complex64"])
@pytest.mark.parametrize("value", [0, 1, True, -0.0, 7, 1e300, float("nan")])
def test_on_the_host_and_by_a_program_are_the_same(monkeypatch, dtype, value):
    if dtype in ("int8", "bool") and value != value:
        return
    dtype = getattr(sbpjax, dtype)
    if value == 1e300 and dtype != sbpjax.bool:  # beyond the dtype: refused, as by PyTorch
        for call in (lambda: sbpjax.full((3,), value, dtype=dtype), lambda: sbpjax.ones(3, dtype=dtype).fill_(value)):
            with pytest.raises(OpError, match="without overflow"):
                call()
        return
    first = sbpjax.full((3,), value, dtype=dtype)
    written = sbpjax.ones(3, dtype=dtype).fill_(value)
    by_programs(monkeypatch)
    second = sbpjax.full((3,), value, dtype=dtype)
    assert first.dtype == second.dtype == written.dtype
    assert bits(first) == bits(second)
    assert bits(written) == bits(sbpjax.ones(3, dtype=dtype).fill_(value))


@pytest.mark.parametrize("options", [{}, {"device": "cpu:1"}, "split"], ids=str)
def test_a_fill_keeps_the_place_and_counts_as_a_write(options):
    options = split() if options == "split" else options
    x = sbpjax.ones(8, 3, **options)
    view, version, before = x[2:4], x._version, x._array.sharding
    x.fill_(2.5)
    assert (x.numpy() == 2.5).all() and x._array.sharding == before and x._version == version + 1
    assert (view.numpy() == 2.5).all()
    view.zero_()
    assert x.numpy().sum() == 2.5 * 18


def test_a_fill_of_a_leaf_is_refused_and_one_of_a_result_stops_its_gradient():
    w = sbpjax.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        w.fill_(1.0)
    y = w * 2
    y.fill_(1.0)
    y.sum().backward()
    assert w.grad.tolist() == [0.0, 0.0, 0.0]


# ----------------------------------------------------------------------------------------------------- random numbers

FILLS = {
    "uniform": lambda x: x.uniform_(-0.3, 0.7),
    "normal": lambda x: x.normal_(0.2, 1.7),
    "random": lambda x: x.random_(-5, 9),
    "exponential": lambda x: x.exponential_(1.3),
    "trunc_normal": lambda x: x.trunc_normal_(0.1, 0.7),
    "init.trunc_normal": lambda x: init.trunc_normal_(x, 0.0, 0.7, -0.6, 0.9),
    "kaiming": lambda x: init.kaiming_uniform_(x, 5**0.5),
}


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("options", [{}, "split"], ids=["local", "split"])
@pytest.mark.parametrize("few", [0, 1 << 22], ids=["blocks", "first"])
def test_numbers_in_blocks_are_those_of_a_program_of_the_shape(monkeypatch, name, options, few):
    monkeypatch.setattr(host_constants, "_FEW", few)
    options = split() if options == "split" else options

    def drawn():
        sbpjax.manual_seed(5)
        return FILLS[name](sbpjax.empty(9, 500, **options))

    first = drawn()
    by_programs(monkeypatch)
    second = drawn()
    assert first.numpy().tobytes() == second.numpy().tobytes()
    assert first.sbp == second.sbp if options else first._array.committed == second._array.committed


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-0.3, 0.7), (2.0, 3.0), (-1e-7, 1.0), (-1e38, 1e38)])
def test_numpy_draws_the_uniform_numbers_of_a_program(compilations, monkeypatch, bounds, dtype):
    if dtype == "float16" and bounds[1] > 1e4:
        return

    def drawn():
        sbpjax.manual_seed(5)
        return sbpjax.empty(70_001, dtype=getattr(sbpjax, dtype)).uniform_(*bounds)

    with compilations as count:
        first = bits(drawn())
    assert count.count == 0
    by_programs(monkeypatch)
    assert bits(drawn()) == first


@pytest.mark.parametrize("size", [131072 + 70000, 16 * 4096 + 1])
@pytest.mark.parametrize("few", [0, 1 << 22])
def test_large_draws_take_both_sizes_of_blocks(monkeypatch, size, few):
    monkeypatch.setattr(host_constants, "_FEW", few)

    def drawn():
        sbpjax.manual_seed(6)
        return sbpjax.randn(size).numpy().tobytes()

    first = drawn()
    by_programs(monkeypatch)
    assert drawn() == first


def test_the_limited_normal_is_the_chain_of_its_ops(compiled_ops):
    for mean in (0.0, 0.3):
        sbpjax.manual_seed(7)
        x = by_inverse_(sbpjax.empty(400), -0.8, 0.9, 0.7, mean, -0.6, 0.9)
        sbpjax.manual_seed(7)
        y = sbpjax.empty(400).uniform_(-0.8, 0.9).erfinv_().mul_(0.7 * 2**0.5).add_(mean).clamp_(-0.6, 0.9)
        assert bits(x) == bits(y)


# ----------------------------------------------------------------------------------------------------------- programs


def mixed_model():
    return nn.Sequential(
        nn.Conv2d(3, 11, 3, bias=False), nn.BatchNorm2d(11), nn.Conv2d(11, 23, 3, groups=1), nn.BatchNorm2d(23),
        nn.Flatten(), nn.Linear(23 * 16, 37), nn.LayerNorm(37), nn.Linear(37, 41), nn.PReLU(41), nn.Linear(41, 5),
    )  # fmt: skip


def test_a_model_compiles_at_most_five_programs(compilations):
    with compilations as count:
        mixed_model(), nn.Embedding(913, 7), nn.LSTM(13, 17), nn.MultiheadAttention(26, 2)
        (
            init.trunc_normal_(sbpjax.empty(19, 3)),
            init.trunc_normal_(sbpjax.empty(19, 5)),
            init.xavier_normal_(sbpjax.empty(7, 5)),
        )
    assert count.count <= 5


def test_placed_parameters_compile_no_program_per_shape(compilations):
    options = split()
    sbpjax.randn(8, 3, **options)
    model = mixed_model()
    with compilations as count:
        for shape in ((8, 5), (12, 7), (4, 3, 9), (10, 3)):
            sbpjax.randn(*shape, **options), sbpjax.ones(*shape, **options), sbpjax.zeros(*shape, **options).fill_(3.0)
        for parameter in model.parameters():
            parameter.detach().to_global(**options)
    assert count.count == 0


def test_the_second_step_compiles_nothing(compilations, monkeypatch):
    # An op that meets its sixteenth shape in the first step, after other tests, would begin a table of its programs.
    monkeypatch.setattr(op_calls, "MANY", 10**9)
    model = mixed_model()
    for set_to_none in (False, True):
        optimizer = sbpjax.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(optimizer=optimizer, set_to_none=set_to_none):
            loss = model(sbpjax.randn(2, 3, 8, 8)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=set_to_none)

        step()
        with compilations as count:
            step()
        assert count.count == 0


def test_random_and_constant_parameters_are_bound_alike():
    assert not any(p._array.committed for p in mixed_model().parameters())
    assert all(p._array.committed for p in nn.Conv2d(2, 3, 1, device="cpu:1").parameters())
