"""PyTorch methods with a trivial result here (`is_coalesced`, `to_dense`), and dim orders."""

from __future__ import annotations

from sbpjax._core.tensor.calls.binding import must_be_tensor
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import NotInJaxError, OpError

from .strides import Storage


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have one shape."""
    return self.shape == other.shape


def is_inference(self: Tensor) -> bool:
    """Return False: inference mode only stops recording here."""
    must_be_tensor("is_inference", self)
    return False


def is_distributed(self: Tensor) -> bool:
    """Return False, as PyTorch does of tensors that are no part of a process group; see `is_global`."""
    must_be_tensor("is_distributed", self)
    return False


def is_coalesced(self: Tensor) -> bool:
    """Return True: dense tensors hold every element once."""
    return True


def to_dense(self: Tensor, dtype=None, *, masked_grad: bool = True) -> Tensor:
    """Return the tensor itself, in another dtype if given: all tensors are dense."""
    return self if dtype is None else self.to(dtype)


def record_stream(self: Tensor, stream) -> None:
    """Do nothing: XLA orders its own work."""


def resize(self: Tensor, *size) -> Tensor:
    """Return `resize_` of a copy."""
    return self.clone().detach().resize_(*size)


def resize_as(self: Tensor, other: Tensor) -> Tensor:
    """Return `resize_as_` of a copy."""
    return self.clone().detach().resize_as_(other)


def as_subclass(self: Tensor, cls: type) -> Tensor:
    """Return a tensor of a subclass over the same storage and tape."""
    found = self.alias() if hasattr(self, "alias") else self.view(*self.shape)
    found.__class__ = cls
    return found


def dim_order(self: Tensor, *, ambiguity_check: bool | list = False) -> tuple:
    """Return the dims in memory order, outermost first.

    With ``ambiguity_check`` a tensor whose strides allow several orders is an error, unless it has exactly one of the
    memory formats listed there.
    """
    strides, shape, n = self.stride(), self.shape, self.ndim
    if ambiguity_check is not False:
        formats = ambiguity_check if isinstance(ambiguity_check, list) else []
        several = 1 in shape or any(a == b for a, b in zip(strides, strides[1:], strict=False))
        if (n > 1 and 0 in strides) or (several and sum(self.is_contiguous(memory_format=f) for f in formats) != 1):
            seen, rule = f"shape {list(shape)}, strides {list(strides)}", "the tensor has a unique dim order"
            raise OpError("dim_order(ambiguity_check=...)", seen, rule, "x.dim_order()")
    if self.is_contiguous():
        return tuple(range(n))
    # A repeated dim (stride 0) has no order in memory, and keeps its position; the others are ranked around it.
    ranked = iter(sorted((d for d in reversed(range(n)) if strides[d]), key=lambda d: (strides[d], shape[d])))
    return tuple(reversed([next(ranked) if strides[d] else d for d in reversed(range(n))]))


def cfloat(self: Tensor, memory_format=None) -> Tensor:
    """Return the tensor in complex64."""
    return self.to(dtypes.complex64)


def cdouble(self: Tensor, memory_format=None) -> Tensor:
    """Return the tensor in complex128."""
    return self.to(dtypes.complex128)


def chalf(self: Tensor, memory_format=None) -> Tensor:
    """Raise: JAX has no complex numbers of two 16-bit floats."""
    seen = f"{self.dtype.name}{list(self.shape)}"
    raise NotInJaxError("x.chalf()", seen, "JAX has no complex32; its least complex dtype is complex64", "x.cfloat()")


def refuse_sparse(self: Tensor, *args, **options) -> Tensor:
    """Raise: sparse tensors are of the layouts COO and CSR."""
    fix = "x.to_sparse(), x.to_sparse_csr(); gradients of rows: nn.Embedding(..., sparse=True)"
    seen, rule = f"{self.dtype.name}{list(self.shape)}", "sparse tensors are of the layouts COO and CSR here"
    raise NotInJaxError("x.to_sparse_csc(), x.to_sparse_bsr(...), x.to_sparse_bsc(...)", seen, rule, fix)


def is_storage(obj) -> bool:
    """Return whether an object is the memory of a tensor."""
    return isinstance(obj, Storage)
