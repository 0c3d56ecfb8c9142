"""The SPMD lowering: each conversion of a plan is one collective of the compiled program, under any layout."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler import hlo
from sbpjax._core.compiler.compile import compile_program
from sbpjax._core.compiler.conversions import from_logical, to_logical
from sbpjax._core.compiler.lower import _gathered_outputs
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.placement import placement

KINDS = {"psum": "all-reduce", "psum_scatter": "reduce-scatter", "all_gather": "all-gather", "all_to_all": "all-to-all"}


def _identity(sizes, source, target, shape=(8, 12, 16)):
    p = placement("cpu", np.arange(int(np.prod(sizes))).reshape(sizes))
    return compile_program(lambda x: x, p, [Layout(p, source, shape, "float32")], [target])


def _found(program):
    return sorted((c.kind, c.interconnect_bytes) for c in hlo.collectives(program.hlo()) if c.interconnect_bytes)


def _planned(program):
    return sorted((KINDS[s.kind], s.bytes) for b in program.plan.boxings for s in b.steps if s.bytes)


@pytest.mark.parametrize(
    "source, target", [p for p in itertools.product(["S0", "S1", "B", "P"], repeat=2) if p[0] != p[1]]
)
def test_each_step_on_one_axis_is_one_collective(source, target):
    program = _identity((4,), source, target)
    assert _found(program) == _planned(program)


@pytest.mark.parametrize(
    "source, target",
    [
        ("S0,S0", "B,S0"),
        ("S0,S0", "B,B"),
        ("P,P", "S0,S0"),
        ("P,S1", "B,S1"),
        ("S0,S1", "S1,S0"),
        ("B,S2", "S2,B"),
        ("P,B", "S0,P"),
    ],
)
def test_each_step_on_two_axes_is_one_collective(source, target):
    program = _identity((2, 4), source, target)
    assert _found(program) == _planned(program)
    x = np.arange(8 * 12 * 16, dtype=np.float32).reshape(8, 12, 16)
    (layout,) = program.in_layouts
    (y,) = program.call(from_logical(x, layout.placement, layout.sbp)[0])
    np.testing.assert_array_equal(np.asarray(to_logical(y, program.out_layouts[0])), x)


def test_a_copy_is_made_once_for_all_its_readers():
    p = placement("cpu", [0, 1, 2, 3])

    def fn(x, w):
        return jnp.tanh(x) @ w, jnp.tanh(x) @ (w * 2), x

    layouts = [Layout(p, "S0", (8, 64), "float32"), Layout(p, "S1", (64, 4096), "float32")]
    program = compile_program(fn, p, layouts, ["S1", "S1", "S0"])
    # tanh(x) is written twice in the program; x is gathered once, or each of the two results once.
    assert {kind for kind, _ in _found(program)} == {"all-gather"}
    assert _found(program) == _planned(program)


@pytest.mark.parametrize("rows", [7, 3])
def test_uneven_dims_keep_their_values(rows):
    p = placement("cpu", [[0, 1], [2, 3]])

    def fn(x, w):
        y = jax.nn.log_softmax(x @ w, axis=0)
        return y, jnp.cumsum(y, axis=1), y.max(), y[1:]

    rng = np.random.default_rng(1)
    values = [rng.standard_normal(s).astype(np.float32) for s in ((rows, 5), (5, 6))]
    for sbps in (("S0,S0", "B,S1"), ("S0,S1", "S0,S0"), ("P,S0", "S1,B")):
        layouts = [Layout(p, s, v.shape, v.dtype) for s, v in zip(sbps, values)]
        program = compile_program(fn, p, layouts)
        arrays = [from_logical(v, p, x.sbp)[0] for v, x in zip(values, layouts)]
        for y, layout, want in zip(program.call(*arrays), program.out_layouts, fn(*values)):
            np.testing.assert_allclose(np.asarray(to_logical(y, layout)), want, rtol=2e-6, atol=2e-6)


def test_literal_outputs_and_unread_inputs():
    p = placement("cpu", [0, 1])
    program = compile_program(lambda x, y: (jnp.float32(2.0), x), p, [Layout(p, "S0", (4,), "float32")] * 2, ["B", "B"])
    x, _ = from_logical(np.arange(4, dtype=np.float32), p, "S0")
    two, same = program.call(x, x)
    assert float(to_logical(two, program.out_layouts[0])) == 2.0
    np.testing.assert_array_equal(np.asarray(to_logical(same, program.out_layouts[1])), np.arange(4))


def test_lower_needs_no_arrays():
    p = placement("cpu", [0, 1, 2, 3])
    program = compile_program(lambda x: x.sum(0), p, [Layout(p, "S0", (8, 4), "float32")], ["B"])
    assert "all_reduce" in program.lower().as_text()
    assert program.plan.bytes == 24  # the example of `compile_program`


@pytest.mark.parametrize("written", [(), ("all_gather",)])
def test_outputs_that_are_gathered(written):
    """Where the compiler gathers, and the gather is the last thing; not what is cut, or computed behind a gather."""

    def step(a, b, c):
        return a, b, c, jnp.sort(c, 0)

    line = placement("cpu", range(4))
    given = [Layout(line, sbp, (8, 8), "float32") for sbp in ("S0", "B", "S1")]
    plan = compile_program(step, line, given, ["B", "S0", "B", "B"]).plan
    gathered = _gathered_outputs(plan, [written])
    assert {0, 2} <= gathered <= {0, 2, 3} if not written else gathered == set()
