"""Type promotion against torch: every pair of dtypes in the three categories (dims, 0-d, number)."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from sbpjax._core.ops import promote as pr
from tests.ops.checker import BF16, to_torch, torch_dtype

DTYPES = [
    np.dtype(d) for d in (np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, BF16, np.float32)
]
DTYPES += [np.dtype(np.float64), np.dtype(np.complex64), np.dtype(np.complex128)]
NUMBERS = [True, 3, 2.5, 1j]


def result(*args):
    """torch's answer; its half-width complex does not exist in JAX, which takes the next wider one."""
    got = torch.result_type(*args)
    return torch.complex64 if got == torch.complex32 else got


def name(x):
    return x.name if isinstance(x, np.dtype) else repr(x)


def tensor(dtype, shape):
    return torch.ones(shape, dtype=torch_dtype(dtype))


@pytest.mark.parametrize("a, b", list(itertools.combinations_with_replacement(DTYPES, 2)), ids=name)
def test_promote_types(a, b):
    assert torch_dtype(pr.promote_types(a, b)) == torch.promote_types(torch_dtype(a), torch_dtype(b))
    assert pr.promote_types(a, b) == pr.promote_types(b, a)


@pytest.mark.parametrize("a, b", list(itertools.product(DTYPES, DTYPES)), ids=name)
def test_dims_against_zero_dims(a, b):
    got = pr.result_type(jnp.ones((2,), a), jnp.ones((), b))
    assert torch_dtype(got) == result(tensor(a, (2,)), tensor(b, ()))


@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
@pytest.mark.parametrize("a, b", list(itertools.product(DTYPES, NUMBERS)), ids=name)
def test_numbers(a, b, shape):
    want = result(tensor(a, shape), b)
    assert torch_dtype(pr.result_type(jnp.ones(shape, a), b)) == want
    traced = []
    jax.jit(lambda x, y: traced.append(pr.result_type(x, y)))(jnp.ones(shape, a), b)
    assert torch_dtype(traced[0]) == want


@pytest.mark.parametrize(
    "value, dtype", [(1e40, np.float32), (-1.5, np.int64), (300, np.int8), (2.0, np.bool_), (1e-3, BF16)]
)
def test_cast_of_a_number(value, dtype):
    want = (
        torch.tensor(value).to(torch_dtype(dtype))
        if not isinstance(value, int)
        else to_torch(np.asarray(300).astype(np.int8))
    )
    got = pr.cast(value, dtype)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got).astype(np.float64), want.to(torch.float64).numpy())


def test_numbers_alone_give_default_dtypes():
    assert [pr.result_type(v) for v in NUMBERS] == [np.bool_, np.int64, np.float32, np.complex64]


def test_result_type_needs_an_input():
    with pytest.raises(TypeError, match="at least one"):
        pr.result_type(None)


def test_compute_dtype():
    assert pr.compute_dtype(BF16) == np.float32 and pr.compute_dtype(np.float16) == np.float32
    assert pr.compute_dtype(np.float64) == np.float64
