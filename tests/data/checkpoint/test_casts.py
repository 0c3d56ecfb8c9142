"""Which dtypes hold which: against brute force over all values of the small ones."""

import ml_dtypes
import numpy as np
import pytest

from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax.data.checkpoint.restore_plan import is_lossless_cast

SMALL = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("source", [np.dtype(d) for d in SMALL], ids=str)
def test_against_all_values(source):
    count = 2 if source == np.bool_ else 1 << 8 * source.itemsize
    values = np.arange(count, dtype=f"u{source.itemsize}").view(source)
    with np.errstate(all="ignore"):
        values = values[np.isfinite(values.astype(np.float64))]
    for target in (d.np for d in dtypes.ALL):
        with np.errstate(all="ignore"):
            there = values.astype(target).astype(np.complex128) == values.astype(np.complex128)
        kept = bool(there.all()) and not (target == np.bool_ and source != np.bool_)
        if "fn" in target.name:
            continue  # it has no infinity to compare with
        assert is_lossless_cast(target, source) == kept, (source, target)


@pytest.mark.parametrize(
    "target, source, kept",
    [
        ("float32", "int64", False),
        ("float64", "int32", True), ("float64", "int64", False), ("int64", "float32", False),
        ("complex64", "float32", True), ("float32", "complex64", False), ("complex64", "float64", False),
        ("int32", "int64", False), ("uint64", "int8", False), ("float32", "float64", False), ("<U5", "float32", False),
    ],
)  # fmt: skip
def test_the_large_ones(target, source, kept):
    assert is_lossless_cast(np.dtype(target), np.dtype(source)) == kept
