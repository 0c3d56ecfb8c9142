"""Control flow under layouts: values, and layouts that survive loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.compile import compile_program
from sbpjax._core.compiler.eager import global_ops
from sbpjax._core.compiler.hlo import collectives, total_interconnect_bytes
from sbpjax.sbp import Layout, placement

PLACEMENTS = {"1d": [0, 1, 2, 3], "2d": [[0, 1], [2, 3]]}


def scan(x, w):
    def body(carry, row):
        return jnp.tanh(carry @ w) + row, carry.sum(0)

    return jax.lax.scan(body, x, jnp.stack([x, 2 * x, 3 * x]))


def accumulate(x, w):
    """Sum gradients of micro-batches: the carry may stay partial."""

    def body(total, micro):
        return total + micro.T @ (micro @ w), None

    return jax.lax.scan(body, jnp.zeros_like(w), x.reshape(2, -1, x.shape[1]))[0]


def loop(x, w):
    return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.tanh(c[1] @ w)), (0, x))[1]


def branch(x, w):
    return jax.lax.cond(x.sum() > 0, lambda a, b: a @ b, lambda a, b: a * 2 - b.sum(), x, w)


def fori(x, w):
    return jax.lax.fori_loop(0, 4, lambda i, c: c + w * i, x)


def nested(x, w):
    @jax.checkpoint
    def inner(a):
        return jax.jit(jnp.sin)(a) @ w

    return jax.grad(lambda a: jax.nn.relu(inner(a)).sum())(x)


@pytest.mark.parametrize("function", [scan, accumulate, loop, branch, fori, nested], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("size", [8, 6], ids=["even", "uneven"])
def test_values_do_not_depend_on_the_layout(function, name, size):
    place = placement("cpu", PLACEMENTS[name])
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=(size, size)).astype(np.float32) for _ in range(2))
    expected = jax.tree.leaves(function(jnp.asarray(x), jnp.asarray(w)))
    layouts = ["S0", "S1", "B", "P"] if name == "1d" else ["S0,S1", "B,S0", "P,S1", "S0,S0"]
    for sbp in layouts:
        (a, la), (b, lb) = (conversions.from_logical(v, place, s) for v, s in ((x, sbp), (w, layouts[2])))
        results, out = global_ops.execute(_flat(function), (), (a, b), (la, lb))
        for value, layout, want in zip(results, out, expected, strict=True):
            np.testing.assert_allclose(conversions.to_logical(value, layout), want, rtol=2e-5, atol=2e-5)


_FLAT: dict = {}


def _flat(function):
    return _FLAT.setdefault(function, lambda *a: tuple(jax.tree.leaves(function(*a))))


def test_accumulated_gradients_are_reduced_after_the_loop_not_in_it():
    place = placement("cpu", [0, 1, 2, 3])
    x, lx = conversions.from_logical(np.ones((16, 8), np.float32), place, "S0")
    w, lw = conversions.from_logical(np.ones((8, 8), np.float32), place, "B")

    def micro_batches(x, w):
        def body(total, micro):
            return total + micro.T @ (micro @ w), None

        return jax.lax.scan(body, jnp.zeros_like(w), jnp.swapaxes(x.reshape(8, 2, 8), 0, 1))[0]

    found = global_ops.compile_op(micro_batches, (), (x, w), (lx, lw))
    assert found.plan.out_codes == ((-2,),)
    assert found.plan.bytes == 0


def accumulated_step(turns):
    """A data-parallel step with gradients summed over micro-batches in a loop."""

    def loss(weights, x, y):
        return ((jnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()

    def step(w0, w1, x, y):
        micro = tuple(a.reshape(turns, -1, a.shape[1]) for a in (x, y))

        def body(sums, batch):
            value, grads = jax.value_and_grad(loss)((w0, w1), *batch)
            return tuple(s + g for s, g in zip(sums, grads)), value

        sums, losses = jax.lax.scan(body, (jnp.zeros_like(w0), jnp.zeros_like(w1)), micro)
        return w0 - 0.1 * sums[0], w1 - 0.1 * sums[1], losses

    return step


SHAPES = [(32, 64), (64, 16), (64, 32), (64, 16)]


@pytest.mark.parametrize(
    "ranks,sbps",
    [
        ([0, 1, 2, 3], ["B", "B", "S0", "S0"]),
        ([0, 1, 2, 3], ["S1", "S0", "B", "B"]),
        ([0, 1, 2, 3], ["S0", "S0", "S0", "S0"]),
        ([[0, 1], [2, 3]], ["B,S1", "B,S0", "S0,B", "S0,B"]),
    ],
    ids=["dp", "tp", "fsdp", "2d"],
)
def test_a_loop_is_planned_with_its_program(ranks, sbps):
    place = placement("cpu", ranks)
    layouts = [Layout(place, s, shape, "float32") for s, shape in zip(sbps, SHAPES)]
    step = accumulated_step(4)
    compiled = compile_program(step, place, layouts, [0, 1, None])
    assert total_interconnect_bytes(compiled.hlo()) == compiled.plan.bytes
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
    results = compiled.call(*(conversions.from_logical(v, place, s)[0] for v, s in zip(values, sbps)))
    expected = step(*map(jnp.asarray, values))
    for array, layout, value in zip(results, compiled.out_layouts, expected):
        np.testing.assert_allclose(conversions.to_logical(array, layout), value, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("turns", [2, 8])
def test_partial_gradients_are_summed_in_the_loop_and_reduced_once_behind_it(turns):
    place = placement("cpu", [0, 1, 2, 3])
    shapes = [(32, 64), (64, 16), (1024, 32), (1024, 16)]  # more activations than weights: reducing weights is cheaper
    layouts = [Layout(place, s, shape, "float32") for s, shape in zip(["B", "B", "S0", "S0"], shapes)]
    compiled = compile_program(accumulated_step(turns), place, layouts, [0, 1, None])
    reductions = [c for c in collectives(compiled.hlo()) if c.kind in ("all-reduce", "reduce-scatter")]
    assert 1 <= sum(c.operands for c in reductions) <= 2
    assert {c.count for c in reductions} == {1}


def test_plans_of_loops_come_back_from_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("SBPJAX_CACHE_DIR", str(tmp_path))
    place = placement("cpu", [0, 1, 2, 3])
    layouts = [Layout(place, s, shape, "float32") for s, shape in zip(["S1", "S0", "B", "B"], SHAPES)]
    first = compile_program(accumulated_step(4), place, layouts, [0, 1, None]).plan
    second = compile_program(accumulated_step(4), place, layouts, [0, 1, None]).plan
    assert second is not first and second.bodies
    assert [str(b) for b in second.boxings] == [str(b) for b in first.boxings]
    assert any(b.times == 4 and b.bytes for b in second.boxings)


def test_a_loop_in_a_loop_counts_its_turns():
    place = placement("cpu", [0, 1, 2, 3])

    def twice(x, w):
        def outer(c, _):
            return jax.lax.scan(lambda d, _: (jnp.tanh(d @ w), None), c, None, length=3)[0], None

        return jax.lax.scan(outer, x, None, length=5)[0]

    layouts = [Layout(place, s, (8, 8), "float32") for s in ("B", "S0")]
    compiled = compile_program(twice, place, layouts, ["B"])
    assert total_interconnect_bytes(compiled.hlo()) == compiled.plan.bytes
    arrays = [np.random.default_rng(i).normal(size=(8, 8)).astype(np.float32) for i in range(2)]
    (result,) = compiled.call(*(conversions.from_logical(a, place, s)[0] for a, s in zip(arrays, ("B", "S0"))))
    np.testing.assert_allclose(
        conversions.to_logical(result, compiled.out_layouts[0]), twice(*map(jnp.asarray, arrays)), rtol=2e-5, atol=2e-6
    )
