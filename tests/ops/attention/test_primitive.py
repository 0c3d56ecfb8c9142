"""The primitive: its derivatives of any order, batches, checkpoints, and its price."""

import functools

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.ops.attention import blocks as attention_blocks
from sbpjax._core.ops.attention.attention import LONG, attention
from sbpjax._core.ops.attention.attention import scaled_dot_product_attention as sdpa
from sbpjax._core.ops.attention.primitive import choice, flops
from sbpjax._core.ops.attention.scores import CAUSAL, Scores
from sbpjax._core.programs.normalise import normalise

RNG = np.random.default_rng(3)
Q, K, V, CT, BIAS = (
    jnp.asarray(RNG.standard_normal(s))
    for s in ((2, 4, 20, 6), (2, 2, 30, 6), (2, 2, 30, 5), (2, 4, 20, 5), (4, 20, 30))
)
TANGENTS = tuple(jnp.asarray(RNG.standard_normal(x.shape)) for x in (Q, K, V, BIAS))
KEEP = jnp.asarray(RNG.random((2, 1, 20, 30)) < 0.8)
MASKS = {"none": {}, "causal": {"is_causal": True}, "bias": {"bias": BIAS}, "bool": {"mask": KEEP}}
IDS = jnp.asarray(np.arange(20) // 7)[None], jnp.asarray(np.stack([np.arange(30) // 9, np.arange(30) // 12]))
MASKS["window"] = {"window_size": (5, 2), "soft_cap": 0.5}
MASKS["segments"] = {"ids": IDS, "window_size": (6, 0)}
MASKS["all"] = {"bias": BIAS, "ids": IDS, "window_size": (None, 4), "soft_cap": 0.7}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(attention_blocks, "_ROWS", 16)
    monkeypatch.setattr(attention_blocks, "_KEYS", 16)


def total(implementation, q, k, v, bias=None, mask=None, ids=(None, None), **how):
    mask = mask if bias is None else bias
    out = sdpa(q, k, v, mask, None, *ids, enable_gqa=True, implementation=implementation, **how)
    return (jnp.sin(out) * CT).sum()


def compare(make, how):
    how = dict(how)
    bias = [how.pop("bias")] if "bias" in how else []
    arrays, tangents = (Q, K, V, *bias), TANGENTS[: 3 + len(bias)]
    found, expected = (jax.jit(make(functools.partial(total, i, **how)))(arrays, tangents) for i in ("kernel", "plain"))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


def gradient(f):
    return lambda xs, ts: jax.grad(f, range(len(xs)))(*xs)


def forward_mode(f):
    return lambda xs, ts: jax.jvp(f, xs, ts)


def reverse_over_reverse(f):
    def slope(*xs):
        return sum((g * t).sum() for g, t in zip(jax.grad(f, range(len(xs)))(*xs), TANGENTS))

    return lambda xs, ts: jax.grad(slope, range(len(xs)))(*xs)


def forward_over_reverse(f):
    return lambda xs, ts: jax.jvp(jax.grad(f, range(len(xs))), xs, ts)


def reverse_over_forward(f):
    return lambda xs, ts: jax.grad(lambda *xs: jax.jvp(f, xs, ts)[1], range(len(xs)))(*xs)


@pytest.mark.parametrize("mask", list(MASKS))
def test_first_derivatives(mask):
    compare(gradient, MASKS[mask])
    compare(forward_mode, MASKS[mask])


@pytest.mark.parametrize("mask", ["bias", "causal", "all"])
def test_second_derivatives(mask):
    compare(reverse_over_reverse, MASKS[mask])
    compare(forward_over_reverse, MASKS[mask])
    compare(reverse_over_forward, MASKS[mask])


def test_batches():
    def per_example(f):
        return lambda xs, ts: jax.vmap(jax.grad(f, (0, 3)), (0, None, None, None))(jnp.stack([xs[0], ts[0]]), *xs[1:])

    compare(per_example, MASKS["bias"])

    def of_keys(f):
        return lambda xs, ts: jax.vmap(jax.grad(f, (0, 1)), (None, 3, None), 2)(
            xs[0], jnp.stack([xs[1], ts[1]], 3), xs[2]
        )

    compare(of_keys, MASKS["bool"])
    compare(of_keys, MASKS["segments"])

    def of_ids(f):
        def one(ids, *xs):
            return jax.grad(functools.partial(f, ids=(ids, IDS[1])), (0, 3))(*xs)

        return lambda xs, ts: jax.vmap(one, (0, None, None, None, None))(jnp.stack([IDS[0], IDS[0] + 1]), *xs)

    compare(of_ids, {"bias": BIAS})


def test_checkpoint():
    compare(lambda f: lambda xs, ts: jax.grad(jax.checkpoint(lambda *xs: f(*map(jnp.tanh, xs))), (0, 1, 2))(*xs), {})


def test_forward_and_backward_are_one_equation_each():
    x = jax.ShapeDtypeStruct((2, 4, 1024, 64), "float32")
    for wanted in ((0,), (0, 1, 2)):
        grad = jax.grad(lambda *x: sdpa(*x, is_causal=True).sum(), wanted)
        names = [e.primitive.name for e in normalise(jax.make_jaxpr(grad)(x, x, x)).eqns]
        assert [n for n in names if n.startswith("attention")] == ["attention", "attention_grad"]
        assert "dot_general" not in names


def test_short_sequences_are_composed():
    length = int(LONG**0.5)
    for n, expected in ((length - 1, 0), (length, 1)):
        x = jax.ShapeDtypeStruct((1, n, 8), "float32")
        names = [e.primitive.name for e in jax.make_jaxpr(lambda *x: sdpa(*x))(x, x, x).eqns]
        assert names.count("attention") == expected


def test_a_program_with_a_free_batch_is_exported():
    (batch,) = jax.export.symbolic_shape("b")
    x = jax.ShapeDtypeStruct((batch, 1, int(LONG**0.5), 4), "float32")
    exported = jax.export.export(jax.jit(lambda *x: sdpa(*x)))(x, x, x)
    given = [jnp.asarray(RNG.standard_normal((3, *x.shape[1:])), "float32") for _ in range(3)]
    np.testing.assert_allclose(exported.call(*given), sdpa(*given), rtol=1e-4, atol=1e-5)


def test_the_choice_of_a_kernel_says_why():
    def chosen(platform, grad=False, dtype="bfloat16", mask=None, **how):
        x = jnp.zeros((2, 64, 64), dtype)
        run = functools.partial(sdpa, implementation=how.pop("implementation", "kernel"), **how)
        wanted = jax.grad(lambda *x: run(*x, *(() if mask is None else (mask,))).astype(np.float32).sum())
        name = "attention_grad" if grad else "attention"
        eqns = normalise(jax.make_jaxpr(wanted)(x, x, x)).eqns
        return choice(next(e for e in eqns if e.primitive.name == name), platform)

    assert chosen("cpu", is_causal=True) == chosen("", window_size=(3, 0)) == "blocks"
    assert chosen("cuda", is_causal=True) == chosen("cuda", grad=True, window_size=(3, 0)) == "cudnn"
    assert chosen("tpu", soft_cap=3.0, grad=True) == "splash"
    assert chosen("cuda", soft_cap=3.0) == "blocks: cuDNN has no soft cap"
    assert chosen("tpu", dtype="float16") == "blocks: splash attention takes bfloat16 and float32, not float16"
    assert chosen("tpu", implementation="cudnn") == "blocks: cudnn is requested"
    bias = jnp.zeros((64, 64), "bfloat16")
    assert chosen("tpu", mask=bias) == "blocks: splash attention takes masks of bools for keys, alike for all queries"


def test_flops():
    q, k = jnp.zeros((2, 3, 16, 8)), jnp.zeros((2, 32, 8))
    for how, factor in (
        (Scores(1.0), 1),
        (Scores(1.0, CAUSAL), 0.5),
        (Scores(1.0, (3, 0)), 4 / 32),
        (Scores(1.0, (3, 2)), 6 / 32),
    ):
        run = functools.partial(attention, how=how)
        (forward,) = jax.make_jaxpr(run)(q, k, k).eqns
        assert flops(forward) == factor * 2 * 2 * (2 * 3 * 16 * 32 * 8)
        back = jax.make_jaxpr(jax.grad(lambda *x, run=run: run(*x).sum()))(q, k, k).eqns
        (backward,) = (e for e in back if e.primitive.name == "attention_grad")
        assert flops(backward) == 2.5 * flops(forward)
