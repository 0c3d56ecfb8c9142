"""Flat programs: calls inlined, dead code dropped, remat kept apart."""

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.compiler.lower import spmd_function
from sbpjax._core.planner import plan_exactly
from sbpjax._core.programs.normalise import normalise
from sbpjax.sbp.algebra import B, P
from sbpjax.sbp.placement import placement


def names(function, *examples):
    return [e.primitive.name for e in normalise(jax.make_jaxpr(function)(*examples)).eqns]


def test_calls_are_inlined():
    @jax.custom_vjp
    def double(x):
        return x * 2

    double.defvjp(lambda x: (double(x), None), lambda _, g: (g * 2,))
    assert names(lambda x: jax.jit(lambda y: jnp.sin(double(y)))(x), jnp.ones(3)) == ["mul", "sin"]


def test_dead_equations_are_dropped():
    assert names(lambda x: (jnp.sin(x), jnp.cos(x))[0], jnp.ones(3)) == ["sin"]


def test_one_body_inlined_twice_has_its_own_variables():
    inner = jax.jit(lambda y: y + 1)
    program = normalise(jax.make_jaxpr(lambda x: inner(inner(x)))(jnp.ones(3)))
    assert len({v for e in program.eqns for v in e.outvars}) == 2


def test_differentiated_remat_leaves_a_barrier():
    function = jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x).sum())
    found = names(function, jnp.ones(3))
    assert "optimization_barrier" in found
    assert found.count("sin") >= 1


def test_closed_over_arrays_become_constants():
    table = jnp.arange(4.0)
    program = normalise(jax.make_jaxpr(lambda x: x + table)(jnp.ones(4)))
    assert len(program.consts) == 1


def test_linear_solves_are_inlined():
    matrix = jnp.eye(3) * 2
    found = names(jnp.linalg.solve, matrix, jnp.ones(3))
    assert "custom_linear_solve" not in found and found.count("triangular_solve") == 2
    assert "custom_linear_solve" not in names(jax.grad(lambda a: jnp.linalg.solve(a, jnp.ones(3)).sum()), matrix)


def test_hints_are_dropped():
    mesh = jax.sharding.Mesh(jax.devices("cpu")[:2], ("x",))
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    found = names(lambda x: jax.lax.with_sharding_constraint(jax.device_put(jnp.sin(x)), spec) + 1, jnp.ones(4))
    assert found == ["sin", "add"]


def test_operands_of_a_remat_keep_their_layouts():
    def gradients(x, up, down):
        block = jax.checkpoint(lambda x, up, down: jnp.sin(x @ up) @ down)
        return jax.grad(lambda up, down: block(x, up, down).sum(), (0, 1))(up, down)

    shapes = [jax.ShapeDtypeStruct(s, np.float32) for s in ((64, 16), (16, 32), (32, 16))]
    plan = plan_exactly(normalise(jax.make_jaxpr(gradients)(*shapes)), (4,), ((0,), (B,), (B,)))
    assert sum(b.bytes for b in plan.boxings) == 0
    assert plan.out_codes == ((P,), (P,))
    # Nothing is recomputed before all operands are there: one barrier holds them all.
    physical = [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in shapes]
    text = jax.jit(spmd_function(plan, placement("cpu", range(4)))).lower(*physical).as_text()
    assert text.count("stablehlo.optimization_barrier") == 1
