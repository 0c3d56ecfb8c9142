"""Attention against torch's scaled_dot_product_attention."""

import jax
import numpy as np
import pytest
import torch.nn.functional as tf

from sbpjax._core.ops.attention.attention import scaled_dot_product_attention as sdpa
from sbpjax._core.programs.normalise import normalise
from sbpjax.errors import OpError, OpTypeError, OpValueError
from tests.ops.checker import BF16, B, F, case, run

Q, K, V = F(2, 4, 5, 8), F(2, 4, 6, 8, seed=1), F(2, 4, 6, 3, seed=2)
SQUARE = [F(2, 4, 5, 8, seed=i) for i in range(3)]


def torch_sdpa(q, k, v, mask=None, **kw):
    return tf.scaled_dot_product_attention(q, k, v, mask, **kw)


def masked(*shape):
    mask = B(*shape)
    mask[..., 0] = True
    return mask


INF = np.where(masked(5, 6), 0, -np.inf).astype(np.float32)
CASES = [
    case(sdpa, torch_sdpa, Q, K, V, m)
    for m in (
        None,
        masked(5, 6),
        masked(2, 1, 5, 6),
        masked(2, 1, 1, 6),
        masked(4, 5, 6),
        F(5, 6),
        F(2, 4, 5, 6, seed=4),
    )
]
CASES += [
    case(sdpa, torch_sdpa, Q, K, V, INF, scale=0.3),
    case(sdpa, torch_sdpa, *SQUARE, is_causal=True),
    case(sdpa, torch_sdpa, Q, K, V, is_causal=True),
]
CASES += [
    case(sdpa, torch_sdpa, F(5, 8), F(6, 8), F(6, 8)),
    case(sdpa, torch_sdpa, Q, F(1, 4, 6, 8), F(4, 6, 3)),
    case(sdpa, torch_sdpa, F(3, 5, 8), F(3, 6, 8), F(3, 6, 8), is_causal=True),
]
CASES += [
    case(sdpa, torch_sdpa, *(x.astype(BF16) for x in (Q, K, V)), tol=2e-2),
    case(sdpa, torch_sdpa, *(x.astype(BF16) for x in (Q, K, V)), is_causal=True, tol=2e-2),
    case(sdpa, torch_sdpa, *(x.astype(np.float64) for x in (Q, K, V))),
]
GQA = [F(2, 4, 5, 8), F(2, 2, 6, 8), F(2, 2, 6, 8, seed=1)]
CASES += [
    case(sdpa, torch_sdpa, *GQA, m, enable_gqa=True)
    for m in (None, masked(5, 6), masked(2, 4, 5, 6), masked(2, 1, 5, 6))
] + [case(sdpa, torch_sdpa, *GQA, enable_gqa=True, is_causal=True)]
EMPTY_ROW = masked(5, 6)
EMPTY_ROW[2] = False
CASES += [case(sdpa, torch_sdpa, Q, K, V, EMPTY_ROW)]

test_against_torch = run(CASES)


def test_two_contractions():
    program = normalise(jax.make_jaxpr(lambda *x: sdpa(*x, enable_gqa=True, is_causal=True))(*GQA))
    names = [e.primitive.name for e in program.eqns]
    assert names.count("dot_general") == 2 and "transpose" not in names and "concatenate" not in names
    assert names.count("select_n") == 1


def test_weights_are_multiplied_as_fine_as_the_values_and_summed_wide():
    low = [jax.ShapeDtypeStruct(x.shape, "bfloat16") for x in SQUARE]
    products = [e for e in normalise(jax.make_jaxpr(sdpa)(*low)).eqns if e.primitive.name == "dot_general"]
    assert [str(v.aval.dtype) for v in products[-1].invars] == ["bfloat16"] * 2
    assert str(products[-1].outvars[0].aval.dtype) == "float32"


def test_the_slope_of_a_causal_mask_needs_no_mask():
    def names(fn):
        return [e.primitive.name for e in normalise(jax.make_jaxpr(fn)(*SQUARE)).eqns]

    def total(*x):
        return sdpa(*x, is_causal=True).sum()

    assert names(total).count("select_n") == names(jax.grad(total, (0, 1, 2))).count("select_n") == 1


def test_dropout_drops_weights():
    key = jax.random.key(0)
    value = np.broadcast_to(np.eye(6, dtype=np.float32), (2, 4, 6, 6))  # the output is the weights themselves
    full = np.asarray(sdpa(Q, K, value))
    some = np.asarray(sdpa(Q, K, value, None, key, dropout_p=0.5))
    kept = some != 0
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_allclose(some[kept], 2 * full[kept], rtol=1e-5)
    np.testing.assert_array_equal(some, sdpa(Q, K, value, None, key, dropout_p=0.5))


def test_errors():
    with pytest.raises(OpValueError, match="only one"):
        sdpa(Q, K, V, masked(5, 6), is_causal=True)
    with pytest.raises(OpError, match="enable_gqa"):
        sdpa(*GQA)
    with pytest.raises(OpValueError, match="random key"):
        sdpa(Q, K, V, dropout_p=0.1)
    with pytest.raises(OpTypeError, match="equal"):
        sdpa(Q, K.astype(np.float64), V)
    with pytest.raises(OpValueError, match="cudnn"):
        sdpa(Q, K, V, implementation="flash")
    with pytest.raises(OpError, match=r"\(\.\.\., S, D\)"):
        sdpa(Q, V, V)
