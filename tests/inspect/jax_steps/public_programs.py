"""Six training programs as the public examples of their libraries write them, in small sizes.

Each knows the shardings that its authors, or their documentation, give by hand: the batch over all devices, and for the
two language models rules by the names of dims. `by_hand` compiles the program with these by plain `jax.jit`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sbpjax._core.compiler import hlo


@dataclass
class Program:
    """A training program.

    Attributes:
        step: state and batch → new state and the loss last; or NNX objects and batch → the loss.
        make: → its state.
        batch: its batch.
        mesh: names and sizes of the axes.
        rule: name and shape of a leaf of the state → its spec by hand; whole by default.
        data: the spec of the batch by hand.
    """

    step: Callable
    make: Callable[[], tuple]
    batch: tuple
    mesh: dict[str, int]
    rule: Callable[[str, tuple], P] = lambda name, shape: P()
    data: P = P("data")

    def make_mesh(self) -> Mesh:
        """Return the mesh."""
        types = (jax.sharding.AxisType.Auto,) * len(self.mesh)
        return jax.make_mesh(tuple(self.mesh.values()), tuple(self.mesh), axis_types=types)

    @property
    def uses_nnx(self) -> bool:
        """Whether the state is NNX objects, which a step changes in place."""
        return any(isinstance(x, nnx.Pytree) for x in self.make())

    def pure(self) -> tuple[Callable, tuple]:
        """Return the step as a pure function of ``(state, *batch)``, and its state."""
        if not self.uses_nnx:
            return lambda state, *batch: (lambda out: (out[:-1], out[-1]))(self.step(*state, *batch)), self.make()
        graph, state = nnx.split(self.make())

        def step(state, *batch):
            objects = nnx.merge(graph, state)
            loss = self.step(*objects, *batch)
            return nnx.state(objects), loss

        return step, state

    def by_hand(self) -> int:
        """Return the bytes that one device receives in a step compiled by `jax.jit` with the shardings by hand."""
        mesh = self.make_mesh()
        step, state = self.pure()

        def spec(path, x):
            name = jax.tree_util.keystr(path, simple=True, separator=".").removesuffix(".value")
            return NamedSharding(mesh, self.rule(name, x.shape))

        shardings = jax.tree_util.tree_map_with_path(spec, state)
        batch = tuple(NamedSharding(mesh, self.data) for _ in self.batch)
        whole = NamedSharding(mesh, P())
        jitted = jax.jit(step, in_shardings=(shardings, *batch), out_shardings=(shardings, whole))
        with jax.set_mesh(mesh):
            return hlo.total_interconnect_bytes(jitted.lower(state, *self.batch).compile().as_text())


def _normal(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def _integers(seed: int, most: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).integers(0, most, shape).astype(np.int32))


def _constrain(x, *names):
    """Constrain an activation if there is a mesh with these axes, as the programs for many devices do."""
    mesh = jax.sharding.get_abstract_mesh()
    return x if mesh.empty else jax.lax.with_sharding_constraint(x, P(*names))


# -- Flax NNX: MNIST tutorial ------------------------------------------------------------------------------------------


class CNN(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(1, 32, kernel_size=(3, 3), rngs=rngs)
        self.batch_norm1 = nnx.BatchNorm(32, rngs=rngs)
        self.dropout1 = nnx.Dropout(rate=0.025, rngs=rngs)
        self.conv2 = nnx.Conv(32, 64, kernel_size=(3, 3), rngs=rngs)
        self.batch_norm2 = nnx.BatchNorm(64, rngs=rngs)
        self.avg_pool = functools.partial(nnx.avg_pool, window_shape=(2, 2), strides=(2, 2))
        self.linear1 = nnx.Linear(3136, 256, rngs=rngs)
        self.dropout2 = nnx.Dropout(rate=0.025, rngs=rngs)
        self.linear2 = nnx.Linear(256, 10, rngs=rngs)

    def __call__(self, x):
        x = self.avg_pool(nnx.relu(self.batch_norm1(self.dropout1(self.conv1(x)))))
        x = self.avg_pool(nnx.relu(self.batch_norm2(self.conv2(x))))
        x = x.reshape(x.shape[0], -1)
        return self.linear2(nnx.relu(self.dropout2(self.linear1(x))))


def _make_cnn():
    model = CNN(rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(0.005, 0.9), wrt=nnx.Param)
    return model, optimizer, nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))


def _mnist_step(model, optimizer, metrics, image, label):
    def loss_fn(model):
        logits = model(image)
        return optax.softmax_cross_entropy_with_integer_labels(logits, label).mean(), logits

    (loss, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model)
    metrics.update(loss=loss, logits=logits, labels=label)
    optimizer.update(model, grads)
    return loss


# -- Flax NNX: language model (examples/lm1b_nnx) ----------------------------------------------------------------------


class Layer(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.norm1 = nnx.LayerNorm(64, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(
            num_heads=4, in_features=64, decode=False, deterministic=False, dropout_rate=0.1, rngs=rngs, use_bias=False
        )
        self.norm2 = nnx.LayerNorm(64, rngs=rngs)
        self.up = nnx.Linear(64, 256, rngs=rngs)
        self.down = nnx.Linear(256, 64, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.dropout(self.attention(self.norm1(x), mask=mask))
        h = _constrain(nnx.relu(self.up(self.norm2(x))), "data", None, "model")
        return x + self.dropout(self.down(h))


class Decoder(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.embed = nnx.Embed(512, 64, rngs=rngs)
        self.layers = nnx.List([Layer(rngs) for _ in range(2)])
        self.norm = nnx.LayerNorm(64, rngs=rngs)
        self.head = nnx.Linear(64, 512, rngs=rngs)

    def __call__(self, tokens):
        x = _constrain(self.embed(tokens), "data")
        mask = nnx.make_causal_mask(tokens)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.norm(x))


def _make_lm():
    model = Decoder(nnx.Rngs(params=0, dropout=1))
    tx = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 2e-3, 10, 100), b1=0.9, b2=0.98, weight_decay=0.1)
    return model, nnx.Optimizer(model, tx, wrt=nnx.Param)


def _lm_step(model, optimizer, tokens, targets):
    def loss_fn(model):
        logits = model(tokens)
        weights = jnp.where(targets > 0, 1, 0).astype(jnp.float32)
        loss = optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(targets, 512), 0.1))
        return (loss * weights).sum() / weights.sum()

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


def _lm_rule(name: str, shape: tuple) -> P:
    """Embedding dims over data (FSDP), hidden, heads and vocabulary over model."""
    columns = ("query.kernel", "key.kernel", "value.kernel", "up.kernel", "head.kernel")
    if name.endswith(columns):
        return P("data", "model")
    if name.endswith(("out.kernel", "down.kernel", "embedding")):
        return P("model", None, "data") if len(shape) == 3 else P("model", "data")
    return P()


# -- MaxText's decoder in plain JAX ------------------------------------------------------------------------------------


def _make_maxtext():
    d, heads, groups, width, hidden, vocab, depth = 64, 8, 4, 8, 128, 512, 3
    w = lambda seed, *shape: _normal(seed, *shape) / shape[-2] ** 0.5  # noqa: E731
    layers = {
        "query": w(0, depth, d, heads * width), "key": w(1, depth, d, groups * width),
        "value": w(2, depth, d, groups * width), "out": w(3, depth, heads * width, d),
        "wi_0": w(4, depth, d, hidden), "wi_1": w(5, depth, d, hidden), "wo": w(6, depth, hidden, d),
        "norm_1": jnp.ones((depth, d), jnp.float32), "norm_2": jnp.ones((depth, d), jnp.float32),
    }  # fmt: skip
    params = {"embedding": w(7, vocab, d), "layers": layers, "norm": jnp.ones(d, jnp.float32), "logits": w(8, d, vocab)}
    return params, _MAXTEXT.init(params)


_MAXTEXT = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b1=0.9, b2=0.95, weight_decay=0.1))


def _rms_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * scale


def _rotate(x):
    position = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None, None]
    scale = 10_000 ** (jnp.arange(x.shape[-1] // 2, dtype=jnp.float32) * 2 / x.shape[-1])
    sin, cos = jnp.sin(position / scale), jnp.cos(position / scale)
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _decoder_layer(x, w):
    batch, length, _ = x.shape
    h = _rms_norm(x, w["norm_1"])
    query = _rotate((h @ w["query"]).reshape(batch, length, 8, 8))
    key = _rotate((h @ w["key"]).reshape(batch, length, 4, 8))
    value = (h @ w["value"]).reshape(batch, length, 4, 8)
    out = jax.nn.dot_product_attention(query, key, value, is_causal=True).reshape(batch, length, 64)
    x = _constrain(x + out @ w["out"], "data")
    h = _rms_norm(x, w["norm_2"])
    h = _constrain(jax.nn.silu(h @ w["wi_0"]) * (h @ w["wi_1"]), "data", None, "model")
    return _constrain(x + h @ w["wo"], "data"), None


def _maxtext_step(params, opt_state, inputs, targets):
    def loss_fn(params):
        x = params["embedding"][inputs]
        x, _ = jax.lax.scan(jax.checkpoint(_decoder_layer), x, params["layers"])
        logits = _rms_norm(x, params["norm"]) @ params["logits"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = _MAXTEXT.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def _maxtext_rule(name: str, shape: tuple) -> P:
    own = name.rpartition(".")[2]
    if own in ("query", "key", "value", "wi_0", "wi_1"):
        return P(None, "data", "model")
    if own in ("out", "wo"):
        return P(None, "model", "data")
    return {"embedding": P("model", "data"), "logits": P("data", "model")}.get(own, P())


# -- optax: the tutorial on a multilayer perceptron --------------------------------------------------------------------

_OPTAX = optax.chain(optax.clip(1.0), optax.adam(optax.exponential_decay(1e-2, 100, 0.99)))


def _net(x, params):
    x = jax.nn.relu(jnp.dot(x, params["hidden"]))
    return jnp.dot(x, params["output"])


def _optax_step(params, opt_state, batch, labels):
    def loss(params):
        y_hat = _net(batch, params)
        return jnp.mean(optax.sigmoid_binary_cross_entropy(y_hat, labels).sum(axis=-1))

    loss_value, grads = jax.value_and_grad(loss)(params)
    updates, opt_state = _OPTAX.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss_value


def _make_optax():
    params = {"hidden": _normal(0, 32, 256) / 6, "output": _normal(1, 256, 64) / 16}
    return params, _OPTAX.init(params)


# -- Haiku: the MNIST example, a pure function of nested dicts ---------------------------------------------------------


class TrainingState(NamedTuple):
    params: Any
    avg_params: Any
    opt_state: Any


_HAIKU = optax.adam(1e-3)


def _make_haiku():
    sizes, params = (784, 300, 100, 10), {}
    for i, (m, n) in enumerate(zip(sizes, sizes[1:], strict=False)):
        params[f"mlp/~/linear_{i}"] = {"w": _normal(i, m, n) / m**0.5, "b": jnp.zeros(n, jnp.float32)}
    return (TrainingState(params, jax.tree.map(jnp.copy, params), _HAIKU.init(params)),)


def _apply(params, images):
    x = jnp.reshape(images, (images.shape[0], -1))
    for i, layer in enumerate(params.values()):
        x = x @ layer["w"] + layer["b"]
        x = jax.nn.relu(x) if i + 1 < len(params) else x
    return x


def _haiku_step(state: TrainingState, images, labels):
    def loss(params):
        logits = _apply(params, images)
        l2 = 0.5 * sum(jnp.sum(jnp.square(p)) for p in jax.tree.leaves(params))
        likelihood = jnp.sum(jax.nn.one_hot(labels, 10) * jax.nn.log_softmax(logits))
        return -likelihood / images.shape[0] + 1e-4 * l2

    value, grads = jax.value_and_grad(loss)(state.params)
    updates, opt_state = _HAIKU.update(grads, state.opt_state)
    params = optax.apply_updates(state.params, updates)
    average = optax.incremental_update(params, state.avg_params, step_size=0.001)
    return TrainingState(params, average, opt_state), value


# -- Equinox: a perceptron ---------------------------------------------------------------------------------------------


def _perceptron() -> Program | None:
    """Return Equinox's perceptron, None without Equinox."""
    try:
        import equinox
    except ImportError:
        return None
    tx = optax.adam(1e-3)

    def make():
        model = equinox.nn.MLP(32, 16, 256, 2, key=jax.random.key(0), dtype=jnp.float32)
        return model, tx.init(equinox.filter(model, equinox.is_array))

    @equinox.filter_jit
    def step(model, opt_state, x, y):
        loss, grads = equinox.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, opt_state = tx.update(grads, opt_state, model)
        return equinox.apply_updates(model, updates), opt_state, loss

    return Program(step, make, (_normal(2, 64, 32), _normal(3, 64, 16)), {"data": 8})


@jax.tree_util.register_dataclass
@dataclass
class Perceptron:
    """A module as a pytree, as Equinox makes them."""

    weights: list
    biases: list

    def __call__(self, x):
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = jax.nn.relu(w @ x + b)
        return self.weights[-1] @ x + self.biases[-1]


_TREE = optax.adam(1e-3)


def _make_tree():
    sizes = (32, 256, 256, 16)
    weights = [_normal(i, n, m) / m**0.5 for i, (m, n) in enumerate(zip(sizes, sizes[1:], strict=False))]
    model = Perceptron(weights, [jnp.zeros(len(w), jnp.float32) for w in weights])
    return model, _TREE.init(model)


def _tree_step(model, opt_state, x, y):
    loss, grads = jax.value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
    updates, opt_state = _TREE.update(grads, opt_state, model)
    return optax.apply_updates(model, updates), opt_state, loss


PROGRAMS: dict[str, Callable[[], Program | None]] = {
    "nnx_mnist": lambda: Program(
        _mnist_step, _make_cnn, (_normal(0, 32, 28, 28, 1), _integers(1, 10, 32)), {"data": 8}
    ),
    "nnx_lm": lambda: Program(
        _lm_step, _make_lm, (_integers(0, 512, 8, 32), _integers(1, 512, 8, 32)), {"data": 4, "model": 2}, _lm_rule
    ),
    "maxtext": lambda: Program(
        _maxtext_step, _make_maxtext, (_integers(0, 512, 8, 32), _integers(1, 512, 8, 32)), {"data": 2, "model": 4},
        _maxtext_rule,
    ),
    "optax": lambda: Program(_optax_step, _make_optax, (_normal(2, 64, 32), _integers(3, 2, 64, 64)), {"data": 8}),
    "haiku": lambda: Program(_haiku_step, _make_haiku, (_normal(3, 64, 28, 28, 1), _integers(4, 10, 64)), {"data": 8}),
    "module_tree": lambda: Program(_tree_step, _make_tree, (_normal(4, 64, 32), _normal(5, 64, 16)), {"data": 8}),
    "equinox": _perceptron,
}  # fmt: skip
