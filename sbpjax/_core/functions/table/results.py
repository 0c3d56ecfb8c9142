"""Rules for the results of ops: errors of failed decompositions (`fails` of a row), and OneFlow's result dtypes.

The `info` of a batch of matrices can be read on the CPU and outside compiled programs; elsewhere nothing is raised.
"""

from __future__ import annotations

import numpy as np

from sbpjax._core import naming
from sbpjax._core.tensor.calls import bounds
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import LinAlgError


def _raise_for_info(operation: str, info: Tensor, rule: str, fix: str) -> None:
    parts = bounds.parts_on_cpu(info)
    for part in parts:
        if part.any():
            raise LinAlgError(operation, f"info {part.tolist()}", f"{first_in_batch(part, parts)}{rule}", fix)


def first_in_batch(failed: np.ndarray, parts: list) -> str:
    """Return the first failed matrix of a batch as text, empty for one matrix and for one of several ranks' parts."""
    if failed.ndim == 0 or len(parts) > 1:
        return ""
    return f"(Batch element {tuple(int(i) for i in np.argwhere(failed)[0])}): "


def raise_not_positive_definite(operation: str, info: Tensor) -> None:
    """Raise `LinAlgError` where a matrix has no Cholesky factor."""
    rule = "the factorization could not be completed because the input is not positive-definite"
    _raise_for_info(operation, info, rule, "A + eps * sbpjax.eye(n), or linalg.cholesky_ex(A)")


def raise_singular(operation: str, info: Tensor) -> None:
    """Raise `LinAlgError` where a matrix has no inverse."""
    rule = "The solver failed because the input matrix is singular: a pivot of its LU decomposition is zero"
    _raise_for_info(operation, info, rule, "linalg.pinv(A), or linalg.lstsq")


def raise_singular_u(operation: str, info: Tensor) -> None:
    """Raise `LinAlgError` where the U of an LU factorisation is singular."""
    _raise_for_info(operation, info, "U has a zero on its diagonal", "linalg.lu_factor_ex(A)")


def raise_singular_d(operation: str, info: Tensor) -> None:
    """Raise `LinAlgError` where the D of an LDL factorisation is singular."""
    _raise_for_info(operation, info, "D has a zero on its diagonal", "linalg.ldl_factor_ex(A)")


def int32(result):
    """Return indices in int32 for scripts that import the package as oneflow, whose indices are that."""
    return result.to(dtypes.int32) if naming.is_oneflow() else result


def int32_indices(result):
    """Return a result with its indices in int32, likewise."""
    return result._replace(indices=int32(result.indices))


def float64(result):
    """Return a result in float64, likewise."""
    return result.to(dtypes.float64) if naming.is_oneflow() else result
