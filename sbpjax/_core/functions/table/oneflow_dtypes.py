"""OneFlow's result dtypes, for scripts that import the package as oneflow."""

from __future__ import annotations

from sbpjax._core import naming
from sbpjax._core.tensor.handle import dtype as dtypes


def int32(result):
    """Return indices in int32."""
    return result.to(dtypes.int32) if naming.is_oneflow() else result


def int32_indices(result):
    """Return a result with its indices in int32."""
    return result._replace(indices=int32(result.indices))


def float64(result):
    """Return a result in float64."""
    return result.to(dtypes.float64) if naming.is_oneflow() else result
