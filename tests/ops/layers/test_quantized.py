"""Weights of 8 bits: how far they are from what they were made of, and their products."""

import ml_dtypes
import numpy as np
import pytest

from sbpjax._core.ops.layers.quantized import linear_quantized, quantize_rows

INT8, FP8 = np.dtype("int8"), np.dtype(ml_dtypes.float8_e4m3fn)
W = np.random.default_rng(0).standard_normal((48, 32)).astype("f")


def test_int8_is_off_by_half_a_step_at_most():
    small, scale = quantize_rows(W, INT8)
    assert small.dtype == INT8 and np.abs(np.asarray(small, "i4")).max(1).tolist() == [127] * 48
    assert (
        np.abs(np.asarray(small) * np.asarray(scale)[:, None] - W) <= np.abs(W).max(1, keepdims=True) / 254 + 1e-7
    ).all()


def test_fp8_keeps_three_bits_of_mantissa():
    small, scale = quantize_rows(W, FP8)
    large = np.abs(W) > np.abs(W).max(1, keepdims=True) / 100
    np.testing.assert_allclose((np.asarray(small, "f") * np.asarray(scale)[:, None])[large], W[large], rtol=2.0**-4)


def test_a_row_of_zeros_stays_so():
    small, scale = quantize_rows(np.zeros((2, 4), "f"), INT8)
    assert not np.asarray(small).any() and (np.asarray(scale) == 1).all()


@pytest.mark.parametrize("dtype", [INT8, FP8], ids=str)
def test_the_product_is_that_of_the_rounded_weight(dtype):
    small, scale = quantize_rows(W, dtype)
    x, bias = np.random.default_rng(1).standard_normal((3, 5, 32)).astype("f"), np.arange(48, dtype="f")
    rounded = np.asarray(small, "f8") * np.asarray(scale, "f8")[:, None]
    np.testing.assert_allclose(linear_quantized(x, small, scale, bias), x @ rounded.T + bias, rtol=1e-5, atol=1e-4)
