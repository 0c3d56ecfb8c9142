"""Eager execution: values, pins, caching, boxing policy."""

import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager import global_ops
from sbpjax._core.runtime.lru_cache import LRUCache
from sbpjax.errors import BoxingError, BoxingWarning, MixedTensorError
from sbpjax.sbp import Layout, placement
from sbpjax.sbp.policy import boxing_policy

ONE = placement("cpu", [0, 1, 2, 3])
TWO = placement("cpu", [[0, 1], [2, 3]])


def values(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_pinned_outputs_come_out_as_asked():
    x, layout = conversions.from_logical(values((8, 12)), ONE, "P")
    (y,), (out,) = global_ops.execute(jnp.exp, (), (x,), (layout,), out_sbps=("S1",))
    assert out.codes == (1,)
    np.testing.assert_allclose(conversions.to_logical(y, out), np.exp(values((8, 12))), rtol=1e-6)


def test_scalars_and_none_go_along():
    def scaled(x, factor, nothing, /, power):
        assert nothing is None
        return (x * factor) ** power

    x, layout = conversions.from_logical(values((8, 12)), ONE, "S0")
    for factor in (2.0, np.float32(2.0), jnp.asarray(2.0, jnp.float32)):
        (y,), (out,) = global_ops.execute(scaled, (("power", 2),), (x, factor, None), (layout, None, None))
        assert out.dtype == np.float32
        np.testing.assert_allclose(conversions.to_logical(y, out), (values((8, 12)) * 2) ** 2, rtol=1e-6)


def test_programs_are_cached_by_layout():
    x, layout = conversions.from_logical(values((8, 12)), ONE, "S0")
    global_ops.execute(jnp.cos, (), (x,), (layout,))
    before = len(global_ops._PROGRAMS)
    global_ops.execute(jnp.cos, (), (x,), (layout,))
    assert len(global_ops._PROGRAMS) == before
    assert Layout(ONE, "S0", (8, 12), np.float32) is layout


def test_programs_are_not_kept_without_bound(monkeypatch):
    monkeypatch.setattr(global_ops, "_PROGRAMS", LRUCache(3))
    for rows in (4, 8, 12, 16, 20):
        x = values((rows, 2))
        array, layout = conversions.from_logical(x, ONE, "S0")
        (out,), (lay,) = global_ops.execute(jnp.negative, (), [array], [layout])
        np.testing.assert_array_equal(conversions.to_logical(out, lay), -x)
        assert len(global_ops._PROGRAMS.everything()) <= 3


def test_two_placements_are_an_error():
    a, la = conversions.from_logical(values((8, 12)), ONE, "S0")
    b, lb = conversions.from_logical(values((8, 12)), TWO, "S0,B")
    with pytest.raises(MixedTensorError, match=r"(?s)seen: .*\[0, 1, 2, 3\].*rule: .*one placement.*fix: .*to_global"):
        global_ops.execute(jnp.add, (), (a, b), (la, lb))


def test_boxing_policy():
    a, la = conversions.from_logical(values((8, 12)), ONE, "S0")
    b, lb = conversions.from_logical(values((8, 12)), ONE, "S1")
    c, lc = conversions.from_logical(values((8, 12)), ONE, "B")
    with boxing_policy("error"):
        global_ops.execute(jnp.add, (), (a, c), (la, lc))  # a slice moves nothing
        with pytest.raises(BoxingError, match=r"(?s)add.*all_to_all, 72 B.*fix: "):
            global_ops.execute(jnp.add, (), (a, b), (la, lb))
    with boxing_policy("warn"), pytest.warns(BoxingWarning, match="all_to_all"):
        global_ops.execute(jnp.add, (), (a, b), (la, lb))
    global_ops.execute(jnp.add, (), (a, b), (la, lb))
    with pytest.raises(ValueError, match="auto"):
        boxing_policy("never")  # at once, not when the block is entered


def test_donated_inputs_give_their_memory():
    a, la = conversions.from_logical(values((8, 12)), ONE, "S0")
    launcher, inputs, (layout,) = global_ops.prepare_launch(jnp.negative, (), (a,), (la,), (la.codes,), (0,))
    outs: list = []
    steps, _ = launcher.prepare_call(inputs, outs)
    assert not a.is_deleted()
    for step in steps:
        list(step)
    assert a.is_deleted() and layout is la
    np.testing.assert_array_equal(np.asarray(conversions.to_logical(outs[0], layout)), -values((8, 12)))


@pytest.mark.parametrize("codes", [("B", "B"), ("S0", "B"), ("P", "B")])
def test_reducing_nothing_works_in_every_layout(codes):
    x, layout = conversions.from_logical(np.zeros(0, np.float32), TWO, ",".join(codes))
    (mean,), (out,) = global_ops.execute(lambda a, b: ((a - b) ** 2).mean(), (), [x, x], [layout, layout])
    assert np.isnan(np.asarray(conversions.to_logical(mean, out)))


def test_an_input_that_no_element_meets():
    """Of operands that XLA needs, all are empty: the other one is multiplied with nothing."""
    x, lx = conversions.from_logical(np.zeros(0, np.float32), TWO, "P,S0")
    w, lw = conversions.from_logical(np.ones(1, np.float32), TWO, "P,B")
    (a, b), (la, lb) = global_ops.execute(lambda x, w: (x * w, (x * x).sum() * w), (), [x, w], [lx, lw])
    assert np.asarray(conversions.to_logical(a, la)).shape == (0,) and np.asarray(conversions.to_logical(b, lb)) == 0
