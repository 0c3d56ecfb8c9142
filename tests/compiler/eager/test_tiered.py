"""Programs that are compiled quickly first: which ops, until when, and with the same values."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import sbpjax as flow
from sbpjax._core.compiler.eager import shape_cache
from sbpjax._core.compiler.eager import tiered as cold
from sbpjax._core.compiler.eager.background_compile import BackgroundCompile
from sbpjax._core.compiler.eager.tiered import TieredProgram
from sbpjax._core.runtime.lru_cache import LRUCache
from sbpjax._core.tensor.dispatch.op import Op, call_kept

X = np.linspace(-1, 1, 12, dtype="f").reshape(3, 4)
pytestmark = [
    pytest.mark.skipif(jax.__version_info__ >= (0, 11), reason="cold programs are for jaxlib 0.10 alone"),
    pytest.mark.usefixtures("compiled_ops"),
]


@pytest.fixture(autouse=True)
def tables(monkeypatch):
    monkeypatch.setattr(shape_cache, "_programs", LRUCache(64))
    monkeypatch.setattr(shape_cache, "_names", LRUCache(64))


def test_the_usual_program_takes_over_when_it_is_worth_it(monkeypatch):
    monkeypatch.setattr(cold, "_ELEMENTS", 5 * X.size)
    op = Op(lambda x: x.max(-1), name="most")
    op.call(X)
    op.spread()
    for call in range(7):
        np.testing.assert_array_equal(op.call(X), X.max(-1))
        (program,) = shape_cache._programs.values()
        assert isinstance(program, TieredProgram) == (call < 5), call


def test_large_arrays_are_compiled_well_at_once(monkeypatch):
    monkeypatch.setattr(cold, "_ELEMENTS", 4 * X.size - 1)
    function = jnp.exp
    usual = jax.jit(function)
    assert cold.select_tiered_program(function, usual, (X,), None) is usual
    monkeypatch.setattr(cold, "_ELEMENTS", 4 * X.size)
    found = cold.select_tiered_program(function, usual, (X,), None)
    assert isinstance(found, TieredProgram) and "exp" in found.lower(X).as_text()


def test_ops_of_a_name_with_many_programs_are_compiled_quickly(monkeypatch):
    monkeypatch.setattr(shape_cache, "_MANY_OF_A_NAME", 3)
    monkeypatch.setattr(cold, "_ELEMENTS", 4 * X.size)

    def pieces(x):
        return x[1:]

    ops = [Op(pieces, name="pieces") for _ in range(4)]
    for op in ops:
        np.testing.assert_array_equal(op.call(X), X[1:])
    assert [isinstance(op.call, TieredProgram) for op in ops] == [False, False, False, True]
    for _ in range(4):
        np.testing.assert_array_equal(ops[3].call(X), X[1:])
    assert not isinstance(ops[3].call, TieredProgram)
    with pytest.raises(TypeError):
        Op(pieces, name="pieces").call("text")


def test_a_trace_takes_a_cold_op_in(monkeypatch):
    monkeypatch.setattr(shape_cache, "_MANY_OF_A_NAME", 0)
    op = Op(lambda x: jnp.exp(x), name="grows")
    np.testing.assert_allclose(op.call(X), np.exp(X), rtol=1e-6)
    assert isinstance(op.call, TieredProgram)
    np.testing.assert_allclose(jax.jit(lambda x: call_kept(op, [x]) * 2)(X), 2 * np.exp(X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: call_kept(op, [x]).sum())(X), np.exp(X), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(op.call)(X), np.exp(X), rtol=1e-6)


def test_gradients_of_ever_new_shapes(monkeypatch):
    monkeypatch.setattr(shape_cache, "_MANY_OF_A_NAME", 4)
    for n in range(1, 24):
        x = flow.tensor(np.arange(1, n + 1, dtype="f").repeat(2).reshape(n, 2), requires_grad=True)
        flow.cat([x.log(), x[:, :1]], 1).max(0)[0].sum().backward()
        wanted = np.zeros((n, 2), "f")
        wanted[-1] = 1 / n
        wanted[-1, 0] += 1
        np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-6)


def test_another_thread_compiles_what_will_be_called(monkeypatch):
    monkeypatch.setattr(shape_cache, "_MANY_OF_A_NAME", 0)
    op, compiled = Op(lambda x: x[1:], name="pieces"), []
    ahead = BackgroundCompile(op, [jax.ShapeDtypeStruct(X.shape, X.dtype)])
    listen = lambda event, duration, **_: compiled.append(event.endswith("backend_compile_duration"))  # noqa: E731
    ahead.compile()
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        np.testing.assert_array_equal(ahead(X), X[1:])
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert isinstance(op.call, TieredProgram) and not any(compiled)
