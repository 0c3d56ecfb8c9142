"""`auto.plan` on public training programs: losses as on one device, no more bytes than by hand, planned collectives."""

import functools

import jax
import numpy as np
import pytest
from flax import nnx

import sbpjax
from sbpjax._core.inspect.traffic import planned_launches
from sbpjax._core.programs.primitives import CONTROL
from sbpjax._core.programs.rules import moved_inside

from .public_programs import PROGRAMS

TOLERANCE = 1e-6
STEPS = 3


@functools.cache
def case(name):
    program = PROGRAMS[name]()
    if program is None:
        pytest.skip("needs equinox; `module_tree` is the same program as a plain pytree")
    args = (*program.make(), *program.batch)
    return program, sbpjax.auto.plan(program.step, *args, mesh=program.make_mesh())


def inner(plan):
    """Return the collectives inside equations."""
    found = []
    for i, eqn in enumerate(plan.program.eqns):
        if i in plan.bodies:
            found += inner(plan.bodies[i]) * eqn.params["length"]
        elif eqn.primitive.name not in CONTROL:
            found += moved_inside(eqn, plan.strategies[i], plan.sizes)
    return found


def losses(program, step):
    """Return the losses of a few steps on a fresh state."""
    state, found = program.make(), []
    for _ in range(STEPS):
        out = step(*state, *program.batch)
        loss = out if program.uses_nnx else out[-1]
        state = state if program.uses_nnx else out[:-1]
        found.append(float(loss))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_equal_one_device(name):
    program, plan = case(name)
    jit = nnx.jit if program.uses_nnx else jax.jit
    wanted = losses(program, program.step if name == "equinox" else jit(program.step))
    np.testing.assert_allclose(losses(program, plan.jit(program.step)), wanted, rtol=TOLERANCE)
    assert wanted[-1] != wanted[0]


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "equinox"])
def test_at_most_the_bytes_of_the_shardings_by_hand(name):
    program, plan = case(name)
    assert 0 < plan.bytes <= program.by_hand()


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_collectives_are_the_planned_ones(name):
    program, plan = case(name)
    traffic = plan.traffic()
    assert traffic.planned == traffic.compiled
    # XLA combines collectives of one kind, at most as the plan's launches are counted.
    launched = planned_launches(plan.plan, sbpjax.placement(plan.mesh))
    single = sum(boxing.times for boxing in plan.plan.boxings for step in boxing.steps if step.bytes)
    assert set(traffic.counts) == set(launched)
    assert all(launched[kind] <= count for kind, count in traffic.counts.items())
    assert sum(traffic.counts.values()) <= single + len(inner(plan.plan))


@pytest.mark.parametrize("name", PROGRAMS)
def test_state_comes_back_in_place(name):
    program, plan = case(name)
    state = nnx.state(program.make()) if program.uses_nnx else program.make()
    assert len(plan.donated) == len([x for x in jax.tree.leaves(state) if isinstance(x, jax.Array)])
