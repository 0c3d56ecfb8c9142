"""`torch.testing`: the older name `assert_allclose`."""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor.creation.from_data import as_tensor as _as_tensor
from sbpjax.testing import assert_close


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Raise AssertionError unless two values are close, in any dtypes; numbers and arrays count as tensors."""
    expected = _as_tensor(expected)
    actual = _as_tensor(actual, dtype=expected.dtype)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=False,
        check_dtype=False,
        msg=msg or None,
    )
