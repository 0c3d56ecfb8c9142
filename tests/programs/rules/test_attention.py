"""Every strategy of attention and its derivatives, by brute force; random problems over implementations and layouts."""

import functools
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from sbpjax._core.ops.attention import blocks as attention_blocks
from sbpjax._core.ops.attention import primitive as attention_primitive
from sbpjax._core.ops.attention import tpu as attention_tpu
from sbpjax._core.ops.attention.primitive import attention, attention_grad_p, attention_p
from sbpjax._core.ops.attention.scores import CAUSAL, EVERY_KEY, Scores
from sbpjax._core.programs.primitives import ATTENTION
from tests.programs.rules.strategy_checker import MESHES, Found, check, equations
from tests.support.attention_cases import CLOSE
from tests.support.attention_reference import by_formula, random_problem

_RNG = np.random.default_rng(7)


def _x(*shape):
    return _RNG.standard_normal(shape)


@functools.cache
def _cases():
    found = []
    q, k, v = _x(5, 4, 3, 7, 2), _x(5, 4, 6, 2), _x(5, 4, 6, 3)
    only = ATTENTION - {"attention_tangent"}
    ids = np.sort(_RNG.integers(0, 3, (5, 1, 7))), np.sort(_RNG.integers(0, 3, (1, 1, 6)))
    for label, mask, segments, window in (
        ("causal", None, None, CAUSAL),
        ("bias per head", _x(1, 4, 1, 7, 6), None, EVERY_KEY),
        ("keys and segments in a window", _RNG.random((5, 1, 1, 1, 6)) < 0.7, ids, (3, 1)),
    ):
        wanted = (0, 1, 2, 3) if label.startswith("bias") else (0, 1, 2)
        operands = (q, k, v) if mask is None else (q, k, v, mask)
        run = functools.partial(attention, how=Scores(0.3, window, soft_cap=0.8))
        grad = jax.grad(lambda *x, run=run, ids=segments: run(*x, segments=ids).sum(), wanted)
        found += equations(label, grad, *operands, only=only)

    def tangent(*x):
        return jax.jvp(functools.partial(attention, how=Scores(0.3, CAUSAL), segments=ids), x, x)[1]

    return found + equations("tangent", tangent, q, k, v, only={"attention_tangent"})


@pytest.mark.parametrize("mesh", MESHES)
def test_strategies(mesh):
    assert check(_cases(), mesh) > 30


def _module(name, module, **options):
    """Return a module of kernels with some options, as `attention_primitive` knows those of a platform."""
    forward, backward = (functools.partial(f, **options) for f in (module.forward, module.backward))
    unsupported_reason = getattr(module, "unsupported_reason", lambda *problem: None)
    return SimpleNamespace(NAME=name, forward=forward, backward=backward, unsupported_reason=unsupported_reason)


KERNELS = (
    _module("splash", attention_tpu, interpret=True),
    _module("together", attention_blocks, one_by_one=False),
)


@pytest.fixture
def every_kernel(monkeypatch):
    monkeypatch.setattr(attention_primitive, "_kernels", lambda platform: KERNELS)
    monkeypatch.setattr(attention_blocks, "_ROWS", 64)
    monkeypatch.setattr(attention_blocks, "_KEYS", 48)


def _found(seed: int, kernel: str) -> list[Found]:
    """Return the forward and the backward of a random problem, with what the formula gives for them."""
    (*problem, mask, segments, how), ct = random_problem(np.random.default_rng(seed), kernel)
    if kernel == "splash":
        assert attention_tpu.unsupported_reason(*problem, mask, segments, how) is None
    dtype = problem[0].dtype
    wide = np.float64 if dtype == np.float64 else np.float32
    out, lse, *grads = by_formula(*problem, mask, segments, how, ct)
    out, lse = out.astype(dtype), lse.astype(wide)
    extras = [x for x in (mask, *(segments or ())) if x is not None]
    params = {"how": how, "segmented": segments is not None, "kernel": kernel, "across": ()}
    mask_grad = mask is not None and mask.dtype != bool
    forward = [*problem, *extras], [out, lse], attention_p, {}
    backward = [*problem, out, lse, *extras, ct], grads, attention_grad_p, {"mask_grad": mask_grad}
    found = []
    for operands, results, primitive, more in (forward, backward):
        (eqn,) = jax.make_jaxpr(functools.partial(primitive.bind, **params, **more))(*operands).eqns
        label = f"case {seed} by {kernel} {how} {[(x.shape, x.dtype.name) for x in operands]}"
        found.append(Found(label, eqn, operands, results, CLOSE[dtype.name]))
    return found


def _compare(seeds):
    """Check each problem in a program of its own: kernels that are interpreted compile much longer together."""
    rng = np.random.default_rng(seeds[0])
    kernels = ["blocks", "together", "splash"]
    return sum(check(_found(seed, kernels[seed % 3]), rng.choice(list(MESHES)), rng) for seed in seeds)


def test_random_problems(every_kernel):
    assert _compare(range(6)) == 12


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(5))
def test_more_random_problems(every_kernel, part):
    assert _compare(range(100 + 40 * part, 140 + 40 * part)) == 80
