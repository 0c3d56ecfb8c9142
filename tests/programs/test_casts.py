"""Casts of weights leave the loops that repeat them, with the same values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.programs.casts import hoist_from_loops
from sbpjax._core.programs.normalise import normalise, run_program

LAYERS, WIDTH, HIDDEN = 3, 8, 16


def layer(x, w):
    up, down = (w[name].astype(jnp.bfloat16) for name in ("up", "down"))
    return jnp.tanh(x @ up) @ down, None


def loss(w, x):
    y, _ = jax.lax.scan(jax.checkpoint(layer), x.astype(jnp.bfloat16), w)
    return y.astype(jnp.float32).mean()


def accumulated(w, x):
    """Gradients summed over two micro-batches: a loop over layers in a loop."""

    def add(total, part):
        return jax.tree.map(jnp.add, total, jax.grad(loss)(w, part)), None

    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, w), x.reshape(2, -1, WIDTH))[0]


def constant_weight(w, x):
    """One weight in every iteration."""
    square = w["up"][0, :, :WIDTH]
    return jax.lax.scan(lambda x, _: (x @ square.astype(jnp.bfloat16), None), x, None, length=4)[0]


def program_of(f, *args):
    leaves, tree = jax.tree.flatten(args)
    closed = jax.make_jaxpr(lambda *xs: jax.tree.leaves(f(*jax.tree.unflatten(tree, xs))))(*leaves)
    return normalise(closed), leaves


def narrowings(program):
    """Return the casts from float32 to bfloat16 of a program and of those in its loops, as two lists of shapes."""
    here, inside = [], []
    for eqn in program.eqns:
        if eqn.primitive.name == "scan":
            inside += sum(narrowings(normalise(eqn.params["jaxpr"])), [])
        elif eqn.primitive.name == "convert_element_type" and eqn.params["new_dtype"] == jnp.bfloat16:
            here.append(eqn.invars[0].aval.shape)
    return here, inside


@pytest.fixture
def weights():
    keys = jax.random.split(jax.random.key(0))
    shapes = {"up": (LAYERS, WIDTH, HIDDEN), "down": (LAYERS, HIDDEN, WIDTH)}
    return {n: jax.random.normal(k, s, "float32") for k, (n, s) in zip(keys, shapes.items(), strict=True)}


X = np.linspace(-1, 1, 4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)
STACKS = [(LAYERS, WIDTH, HIDDEN), (LAYERS, HIDDEN, WIDTH)]


@pytest.mark.parametrize("f", [jax.grad(loss), accumulated])
def test_casts_leave_forward_and_recomputation_once(weights, f):
    program, arrays = program_of(f, weights, X)
    hoisted = hoist_from_loops(program)
    assert any(shape in [(WIDTH, HIDDEN), (HIDDEN, WIDTH)] for shape in narrowings(program)[1])
    here, inside = narrowings(hoisted)
    assert sorted(shape for shape in here if shape in STACKS) == STACKS
    assert not any(shape in [*STACKS, (WIDTH, HIDDEN), (HIDDEN, WIDTH)] for shape in inside)
    for a, b in zip(*(jax.jit(lambda *xs, p=p: run_program(p, xs))(*arrays) for p in (program, hoisted)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_cast_of_a_constant_leaves(weights):
    program, arrays = program_of(constant_weight, weights, X.astype(jnp.bfloat16))
    hoisted = hoist_from_loops(program)
    assert narrowings(program) == ([], [(WIDTH, WIDTH)]) and narrowings(hoisted) == ([(WIDTH, WIDTH)], [])
    np.testing.assert_array_equal(run_program(program, arrays)[0], run_program(hoisted, arrays)[0])


@pytest.mark.parametrize(
    "body",
    [
        lambda c, w: (c + w.sum(), w * 2),  # no cast
        lambda c, w: (c + w.astype(jnp.float64).sum().astype(jnp.float32), None),  # to a larger dtype
        lambda c, w: (c.astype(jnp.bfloat16).astype(jnp.float32), None),  # of what is carried
        lambda c, w: (c, w.astype(jnp.bfloat16)),  # a result
    ],
)
def test_other_loops_stay_as_they_are(body):
    program, _ = program_of(lambda w: jax.lax.scan(body, jnp.float32(0), w), jnp.ones((3, 4), jnp.float32))
    assert hoist_from_loops(program) is program
