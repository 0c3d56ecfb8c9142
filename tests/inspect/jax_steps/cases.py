"""Steps of plain JAX, as their authors write them; the tests of the folder plan them."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

import sbpjax

ADAM = optax.adam(1e-2)


def make_mesh(*shape: int, names: str = "data model", kind: str = "Auto") -> jax.sharding.Mesh:
    """Return a mesh of the first devices."""
    axes = tuple(names.split()[: len(shape)])
    return jax.make_mesh(shape, axes, axis_types=(jax.sharding.AxisType[kind],) * len(shape))


def init(*sizes: int) -> dict:
    """Return the parameters of a multilayer perceptron."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((m, n)).astype(np.float32) / m**0.5 for m, n in zip(sizes, sizes[1:], strict=False)]
    return {f"l{i}": {"w": jnp.asarray(w), "b": jnp.zeros(w.shape[1], jnp.float32)} for i, w in enumerate(weights)}


def loss_of(params: dict, x, y):
    """Return the loss of a multilayer perceptron."""
    for i, layer in enumerate(params.values()):
        x = x @ layer["w"] + layer["b"]
        x = jax.nn.relu(x) if i + 1 < len(params) else x
    return jnp.mean((x - y) ** 2)


def train_step(params, opt_state, x, y):
    """Adam."""
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    updates, opt_state = ADAM.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


@functools.cache
def arguments(batch: int = 32, *sizes: int) -> tuple:
    """Return the arguments of `train_step`."""
    sizes = sizes or (64, 256, 256, 16)
    params = init(*sizes)
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((batch, n)).astype(np.float32) for n in (sizes[0], sizes[-1]))
    return params, ADAM.init(params), jnp.asarray(x), jnp.asarray(y)


@functools.cache
def planned(*shape: int, kind: str = "Auto"):
    """Return the plan of `train_step` on a mesh."""
    return sbpjax.auto.plan(train_step, *arguments(), mesh=make_mesh(*shape, kind=kind))


def losses(step, args: tuple, count: int = 3) -> list[float]:
    """Return the losses of a few steps; new state comes first in the result."""
    found = []
    for _ in range(count):
        *state, loss = step(*args)
        args = (*state, *args[len(state) :])
        found.append(float(loss))
    return found


def one_device(step, args: tuple, count: int = 3) -> list[float]:
    """Return the losses of the same steps on one device."""
    return losses(jax.jit(step), args, count)
