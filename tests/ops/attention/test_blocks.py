"""Attention block by block against the composition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.ops.attention import blocks as blocks
from sbpjax._core.ops.attention.attention import scaled_dot_product_attention as sdpa
from sbpjax._core.ops.attention.scores import CAUSAL, EVERY_KEY, Scores
from tests.programs.rules.strategy_checker import COMPILER
from tests.support.attention_cases import assert_as_composed, random_case, with_gradients


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS", 64)
    monkeypatch.setattr(blocks, "_KEYS", 48)


def compare(seed):
    arrays, ct, keywords = random_case(np.random.default_rng(seed))
    both = [
        jax.jit(lambda *x, i=i: with_gradients(x, ct, keywords, i), compiler_options=COMPILER)(*arrays)
        for i in ("blocks", "plain")
    ]
    assert_as_composed(*both, arrays[0].dtype, f"case {seed} {[x is not None and x.shape for x in arrays]} {keywords}")


def test_random_cases(small):
    for seed in range(15):
        compare(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(4))
def test_more_random_cases(small, part):
    for seed in range(1000 + 50 * part, 1050 + 50 * part):
        compare(seed)


def test_a_row_without_keys(small):
    q, k, v = (jax.random.normal(jax.random.key(i), (2, 100, 8)) for i in range(3))
    keep = jnp.ones((100, 100), bool).at[3].set(False)
    late = jnp.where(jnp.arange(100) < 60, -np.inf, 0.0)[None]  # the first block of keys is hidden from all
    for mask in (keep, jnp.where(keep, 0, -np.inf), late):
        both = [with_gradients((q, k, v, mask), jnp.ones_like(q), {}, i) for i in ("blocks", "plain")]
        assert_as_composed(*both, q.dtype)
    assert (np.asarray(sdpa(q, k, v, keep, implementation="blocks"))[:, 3] == 0).all()
    assert np.isnan(np.asarray(sdpa(q, k, v, jnp.where(keep, 0, -np.inf), implementation="blocks"))[:, 3]).all()


@pytest.mark.parametrize("window", [EVERY_KEY, CAUSAL, (20, 3)])
def test_heads_together_are_as_heads_one_by_one(small, window):
    """The form for GPUs, and for what the TPU's kernel does not take."""
    keys = jax.random.split(jax.random.key(0), 4)
    q, ct = (jax.random.normal(key, (2, 3, 2, 70, 8)) for key in keys[:2])
    k, v = (jax.random.normal(key, (2, 3, 90, 8)) for key in keys[2:])
    mask = jax.random.normal(keys[0], (1, 3, 1, 70, 90))
    segments = (jnp.arange(70) // 30).reshape(1, 1, 70), (jnp.arange(90) // 40).reshape(1, 1, 90)
    problem = q, k, v, mask, segments if window == (20, 3) else None, Scores(0.3, window, soft_cap=0.4)

    def run(one_by_one):
        out, lse = blocks.forward(*problem, one_by_one=one_by_one)
        return [out, jnp.exp(-lse), *blocks.backward(*problem, out, lse, ct, one_by_one=one_by_one)]

    assert_as_composed(run(False), run(True), q.dtype)


def test_memory_grows_with_the_length_and_not_its_square():
    def temporaries(implementation, length):
        x = jax.ShapeDtypeStruct((2, length, 64), "float32")
        grad = jax.grad(lambda *x: sdpa(*x, is_causal=True, implementation=implementation).sum(), (0, 1, 2))
        return jax.jit(grad).lower(x, x, x).compile().memory_analysis().temp_size_in_bytes

    assert temporaries("blocks", 4096) < temporaries("plain", 4096) / 8
    assert temporaries("blocks", 16384) < 4.5 * temporaries("blocks", 4096)
