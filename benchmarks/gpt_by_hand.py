"""The GPT of `examples/gpt/model.py` as one writes it by hand in JAX with sharding constraints: the peer of benchmarks.

Parameters are stacks over layers, scanned over; matrices lie as in ZeRO-3 over the data axis and as in Megatron over
the tensor axis, each axis on a dim of its own, are gathered over the data axis where they are used, and their gradients
come back as they lie; vectors are whole over the data axis. The update is optax's AdamW. Arithmetic is that of the
example: products in the parameters' dtype, norms, softmax and loss in float32.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec

D, T = "a0", "a1"  # the data and the tensor axis
ATTENTION = ("splash", "cudnn", "plain")

# Of every parameter: its shape in (L, V, C, W) for layers, vocabulary, context, width; where it lies; where it is used.
BLOCK = {
    "norm1.w": ("W", PartitionSpec(), PartitionSpec()),
    "norm1.b": ("W", PartitionSpec(), PartitionSpec()),
    "qkv.w": ("3W W", PartitionSpec(T, D), PartitionSpec(T)),
    "qkv.b": ("3W", PartitionSpec(T), PartitionSpec(T)),
    "out.w": ("W W", PartitionSpec(D, T), PartitionSpec(None, T)),
    "out.b": ("W", PartitionSpec(), PartitionSpec()),
    "norm2.w": ("W", PartitionSpec(), PartitionSpec()),
    "norm2.b": ("W", PartitionSpec(), PartitionSpec()),
    "up.w": ("4W W", PartitionSpec(T, D), PartitionSpec(T)),
    "up.b": ("4W", PartitionSpec(T), PartitionSpec(T)),
    "down.w": ("W 4W", PartitionSpec(D, T), PartitionSpec(None, T)),
    "down.b": ("W", PartitionSpec(), PartitionSpec()),
}
OUTSIDE = {
    "token": ("V W", PartitionSpec(T, D), PartitionSpec(T)),
    "position": ("C W", PartitionSpec(D), PartitionSpec()),
    "norm.w": ("W", PartitionSpec(), PartitionSpec()),
    "norm.b": ("W", PartitionSpec(), PartitionSpec()),
}


def _shape(text: str, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(int(part[:-1] or 1) * sizes[part[-1]] for part in text.split())


def _norm(x, w, b):
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return (scaled * w + b).astype(x.dtype)


def _plain(q, k, v):
    """Return causal attention of ``(B, H, T, W / H)`` with all scores."""
    time, width = q.shape[-2:]
    score = jnp.einsum("bhtd,bhsd->bhts", q, k, preferred_element_type=jnp.float32) / math.sqrt(width)
    score = jnp.where(jnp.tril(jnp.ones((time, time), bool)), score, -jnp.inf)
    return jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(score, -1).astype(q.dtype), v)


def _cudnn(q, k, v):
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn").transpose(0, 2, 1, 3)


def _splash(q, k, v):
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    heads, time, width = q.shape[1:]
    names = ("q", "kv", "kv_compute", "q_dkv", "kv_dkv", "kv_dkv_compute", "q_dq", "kv_dq")
    kernel = splash.make_splash_mha_single_device(
        masks.MultiHeadMask([masks.CausalMask((time, time))] * heads),
        block_sizes=splash.BlockSizes(**{f"block_{name}": 512 for name in names}),
    )
    return jax.vmap(kernel)(q * jnp.asarray(width**-0.5, q.dtype), k, v)


def _attention(mesh, kind: str):
    """Return attention on a mesh; the partitioner does not know kernels, so each device calls its own."""
    run = {"splash": _splash, "cudnn": _cudnn, "plain": _plain}[kind]
    if kind == "plain":
        return run
    spec = PartitionSpec(D, T)  # sequences over data, heads over tensor
    return jax.shard_map(run, mesh=mesh, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)


def _block(x, p, *, heads: int, put, attention):
    batch, time, width = x.shape
    p = {k: put(v, BLOCK[k][2]) for k, v in p.items()}
    y = _norm(x, p["norm1.w"], p["norm1.b"])
    qkv = put(
        (y @ p["qkv.w"].T + p["qkv.b"]).reshape(batch, time, heads, 3 * width // heads), PartitionSpec(D, None, T)
    )
    q, k, v = jnp.split(qkv.transpose(0, 2, 1, 3), 3, -1)  # (B, H, T, W / H)
    y = put(attention(q, k, v), PartitionSpec(D, T)).transpose(0, 2, 1, 3)
    x = put(x + y.reshape(batch, time, width) @ p["out.w"].T + p["out.b"], PartitionSpec(D))
    y = _norm(x, p["norm2.w"], p["norm2.b"])
    hidden = put(jax.nn.gelu(y @ p["up.w"].T + p["up.b"], approximate=True), PartitionSpec(D, None, T))
    return put(x + hidden @ p["down.w"].T + p["down.b"], PartitionSpec(D))


def _loss(params, tokens, targets, *, heads: int, put, attention, scan: bool, checkpoint: bool):
    outside = {k: put(v, OUTSIDE[k][2]) for k, v in params["outside"].items()}
    x = put(outside["token"][tokens] + outside["position"][: tokens.shape[1]], PartitionSpec(D))
    block = functools.partial(_block, heads=heads, put=put, attention=attention)
    block = jax.checkpoint(block) if checkpoint else block
    if scan:
        x, _ = jax.lax.scan(lambda x, p: (block(x, p), None), x, params["blocks"])
    else:
        for i in range(next(iter(params["blocks"].values())).shape[0]):
            x = block(x, {k: v[i] for k, v in params["blocks"].items()})
    logits = put(_norm(x, outside["norm.w"], outside["norm.b"]) @ outside["token"].T, PartitionSpec(D, None, T))
    log_p = jax.nn.log_softmax(logits.astype(jnp.float32), -1)
    return -jnp.take_along_axis(log_p, targets[..., None], -1).mean()


def lowered(mesh, *, layers, width, heads, vocab, time, batch, dtype, scan: bool, checkpoint: bool, attention: str):
    """Return the lowered training step, without any array at hand; ``attention`` is one of `ATTENTION`."""
    attend = _attention(mesh, attention)
    sizes = {"L": layers, "V": vocab, "C": time, "W": width}
    put = lambda x, spec: jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))  # noqa: E731
    lies = {
        "blocks": {k: PartitionSpec(None, *spec) for k, (_, spec, _) in BLOCK.items()},
        "outside": {k: spec for k, (_, spec, _) in OUTSIDE.items()},
    }
    shapes = {
        "blocks": {k: (layers, *_shape(text, sizes)) for k, (text, _, _) in BLOCK.items()},
        "outside": {k: _shape(text, sizes) for k, (text, _, _) in OUTSIDE.items()},
    }
    params = jax.tree.map(
        lambda shape, spec: jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec)),
        shapes, lies, is_leaf=lambda x: isinstance(x, tuple) and not isinstance(x, PartitionSpec),
    )  # fmt: skip
    optimizer = optax.adamw(1e-3)
    whole = NamedSharding(mesh, PartitionSpec())
    state = jax.eval_shape(optimizer.init, params)
    state = optax.tree_utils.tree_map_params(
        optimizer,
        lambda s, p: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=p.sharding),
        state, params,
        transform_non_params=lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=whole),
    )  # fmt: skip
    data = jax.ShapeDtypeStruct((batch, time), jnp.int32, sharding=NamedSharding(mesh, PartitionSpec(D)))

    def step(params, state, tokens, targets):
        loss, grads = jax.value_and_grad(_loss)(
            params, tokens, targets, heads=heads, put=put, attention=attend, scan=scan, checkpoint=checkpoint
        )
        grads = jax.tree.map(put, grads, lies)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    places = jax.tree.map(lambda x: x.sharding, (params, state))
    call = jax.jit(step, donate_argnums=(0, 1), out_shardings=(*places, whole))
    return call.lower(params, state, data, data)
