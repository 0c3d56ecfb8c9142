"""Numbers that a dtype cannot hold are refused where they would become other numbers, as PyTorch does."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax._core.tensor.creation.number_range import check_fits, fits
from sbpjax.errors import OpError, OpOverflowError

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()
NUMBERS = [
    True, 0, 1, -1, 127, 128, -128, -129, 255, 256, -255, -256, 32767, 70000, 2**31, -(2**31) - 1, 2**53, -(2**63), 0.5,
    -0.5, -1.0, 255.5, 300.0, 65504.0, 65536.0, 1e10, 1e39, -1e39, 1e300, float("inf"), -float("inf"), float("nan"),
    1j, 1 + 0j, 1e39j,
]  # fmt: skip


def _fills(package, number, dtype):
    try:
        return str(package.zeros(2, dtype=getattr(package, dtype)).fill_(number).tolist())
    except RuntimeError:
        return "refused"


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fill_takes_the_numbers_that_pytorch_takes(dtype):
    for number in NUMBERS:
        if dtype == "bool" and isinstance(number, complex):
            continue
        wanted = _fills(torch, number, dtype)
        assert _fills(flow, number, dtype) == wanted, f"{number} in {dtype}"


def test_a_long_integer_is_no_element():
    with pytest.raises(OverflowError) as caught:
        check_fits("f(x)", 10**30, np.dtype(np.int64))
    assert isinstance(caught.value, OpOverflowError)
    check_fits("f(x)", 10**30, np.dtype(np.float32))


def test_four_bits():
    assert fits(7, flow.int8.np) and fits(-8, np.dtype(np.int8)) and not fits(200, np.dtype(np.int8))


def test_the_error_says_number_and_dtype():
    with pytest.raises(OpError, match=r"300 for int8[\s\S]*without overflow"):
        flow.full((2,), 300, dtype=flow.int8)
