"""Argument helpers of public functions: ``out=``, lists of tensors, and checks for a tensor."""

from __future__ import annotations

from sbpjax.errors import OpError, OpTypeError

from ..handle.tensor import Tensor
from ..storage.inplace import assign_out


def into_out(out, result, exact: bool = False):
    """Write the result of a function into its ``out=`` argument and return that; indices are not cast."""
    if isinstance(result, tuple):
        for target, value in zip(out, result, strict=True):
            into_out(target, value, exact or value.dtype.name == "int64" != target.dtype.name)
        return out
    if exact and out.dtype != result.dtype:
        rule = f"Expected out tensor to have dtype {result.dtype.name}, but got {out.dtype.name} instead"
        raise OpError("out=...", f"out of {out.dtype.name}", rule, f"out.to({result.dtype!r}), or leave out= out")
    return assign_out(out, result)


def _tensor_expected_error(name: str, value) -> OpTypeError:
    seen = f"{type(value).__name__} as its first argument"
    return OpTypeError(f"{name}(...)", seen, "its first argument is a tensor", "sbpjax.tensor(value)")


def must_be_tensor(name: str, value) -> None:
    """Raise unless a value is a tensor, for functions that would return anything unchanged."""
    if not isinstance(value, Tensor):
        raise _tensor_expected_error(name, value)


def list_tensors(tensors, operation: str) -> tuple:
    """Return the tensors of a list argument; raise for anything else."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
        raise OpTypeError(
            operation,
            f"a {type(tensors).__name__}",
            "the tensors come as one list or tuple",
            f"{operation[:-5]}([x, y])",
        )
    for position, x in enumerate(tensors):
        if not hasattr(x, "shape"):
            rule = f"expected Tensor as element {position}, but got {type(x).__name__}"
            raise OpTypeError(operation, f"a {type(x).__name__}", rule, "sbpjax.tensor(value)")
    return tuple(tensors)
