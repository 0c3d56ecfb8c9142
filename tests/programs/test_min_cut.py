"""What a forward saves: minimum cuts of small forwards, worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.programs.min_cut import least_saved
from sbpjax._core.programs.normalise import normalise


def saved(fn, *shapes, dtype=jnp.float32):
    """Return the primitives that make what is saved, where all results of ``fn`` but the first are wanted."""
    program = normalise(jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct(s, dtype) for s in shapes)))
    found = least_saved(program.eqns, program.outvars[1:], set(program.invars))
    return sorted(e.primitive.name for e in program.eqns for v in e.outvars if v in found)


def test_functions_of_one_product_are_saved_as_the_product():
    def fn(x, w):
        h = x @ w
        return h, jnp.tanh(h), jnp.exp(h), h * h

    assert saved(fn, (8, 4), (4, 4)) == ["dot_general"]


def test_functions_of_inputs_are_not_saved():
    assert saved(lambda x: (x, jnp.tanh(x), x * 2), (8, 4)) == []


def test_one_of_two_values_of_a_softmax():
    def fn(x, w):
        scores = x @ w
        e = jnp.exp(scores - jax.lax.reduce_max(scores, (1,))[:, None])
        total = jax.lax.reduce_sum(e, (1,))[:, None]
        return scores, e, e / total

    found = saved(fn, (64, 32), (32, 32))
    assert len(found) == 2 and "exp" in found  # the other is the sum, which is small


def test_the_narrow_end_of_a_chain_is_saved():
    def fn(x, w):
        wide = (x @ w).astype(jnp.float32)
        return wide, jnp.tanh(wide), jnp.cos(wide)

    assert saved(fn, (8, 4), (4, 4), dtype=jnp.bfloat16) == ["dot_general"]

    def narrowed(x, w):
        h = jnp.tanh(x @ w).astype(jnp.bfloat16)
        return h, h, h * 2

    assert saved(narrowed, (8, 4), (4, 4)) == ["convert_element_type"]


def test_a_sum_of_two_products_is_saved_as_the_sum():
    def fn(x, w):
        h = x @ w + w @ x
        return h, jnp.tanh(h)

    assert len(saved(fn, (4, 4), (4, 4))) == 1


def test_what_is_not_pointwise_is_not_computed_again():
    def fn(x):
        y = jax.lax.cumsum(x)
        return y, y, jax.lax.reduce_sum(y, (0,))

    assert saved(fn, (8, 4)) == ["cumsum", "reduce_sum"]


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_against_all_choices(seed):
    """Every wanted value can be computed from what is saved, and no smaller choice of saved values does."""
    rng = np.random.default_rng(seed)

    def fn(x, w):
        values = [x @ w, x[:, :2] @ w[:2, :1]]
        for _ in range(5):
            a, b = (values[i] for i in rng.integers(0, len(values), 2))
            values.append(jnp.tanh(a) + b if rng.random() < 0.7 else jax.lax.reduce_sum(a, (1,))[:, None] * b)
        return (x, *values[-3:])

    program = normalise(jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct((6, 6), jnp.float32),) * 2))
    wanted = [v for v in program.outvars[1:] if v not in program.invars]
    found = least_saved(program.eqns, wanted, set(program.invars))
    maker = {v: e for e in program.eqns for v in e.outvars}

    def enough(kept) -> bool:
        def can(v) -> bool:
            if v in kept or v in program.invars or not hasattr(v, "count") and not isinstance(v, type(wanted[0])):
                return True
            eqn = maker[v]
            if eqn.primitive.name in ("dot_general", "reduce_sum"):
                return False
            return all(can(u) for u in eqn.invars)

        return all(can(v) for v in wanted)

    def size(kept) -> int:
        return sum(int(np.prod(v.aval.shape)) for v in kept)

    assert enough(found)
    values = [v for e in program.eqns for v in e.outvars]
    best = min(
        size(kept)
        for mask in range(1 << len(values))
        if size(kept := [v for i, v in enumerate(values) if mask >> i & 1]) <= size(found) and enough(set(kept))
    ) if len(values) <= 11 else size(found)  # fmt: skip
    assert size(found) == best
