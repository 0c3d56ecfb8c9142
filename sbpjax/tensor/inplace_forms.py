"""In-place methods of the less common functions: ``x.gcd_(y)``, ``x.renorm_(2, 0, 1.0)``, random fills, `map_`.

Loaded when one of them is first called (`sbpjax._lazy`).
"""

from __future__ import annotations

from operator import index as as_int

from sbpjax.errors import OpError, OpTypeError, message
from sbpjax.ops import complex as _complex
from sbpjax.ops import distance, pairs, place, special

from .binding import hashable, inplace_of
from .bounds import check_dim, check_size
from .inplace import inplace, into
from .op import op_of
from .tensor import Tensor

gcd_, lcm_, nextafter_, ldexp_ = (inplace_of(getattr(pairs, n), f"{n}_") for n in ("gcd", "lcm", "nextafter", "ldexp"))
i0_ = inplace_of(special.i0, "i0_")
igamma_, igammac_ = inplace_of(special.igamma, "igamma_"), inplace_of(special.igammac, "igammac_")
mvlgamma_ = inplace_of(special.mvlgamma, "mvlgamma_")
logaddexp2_ = inplace_of(special.logaddexp2, "logaddexp2_")
renorm_ = inplace_of(distance.renorm, "renorm_")
sgn_ = inplace_of(_complex.sgn, "sgn_")
conj_physical_ = inplace_of(_complex.conj, "conj_physical_")


def polygamma_(self: Tensor, n: int) -> Tensor:
    """Write the n-th derivative of digamma into this tensor and return it."""
    return inplace(self, op_of(special.polygamma, (("n", as_int(n)),)))


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write (or add) elements of ``source`` where a flat index names."""
    check_size("x.put_(index, source)", index, self.shape.numel(), 0, negative=True)
    return inplace(self, op_of(place.put, (("accumulate", accumulate),)), (index, source))


def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduce slices of ``source`` into the slices of a dim that ``index`` names."""
    check_dim(f"x.index_reduce_({dim}, index)", index, self, int(dim))
    static = (("dim", as_int(dim)), ("reduce", reduce), ("include_self", include_self))
    return inplace(self, op_of(place.index_reduce, static), (index, source))


def fill_diagonal_(self: Tensor, fill_value, wrap: bool = False) -> Tensor:
    """Write a number on the main diagonal; with ``wrap`` again below, in tall matrices."""
    return inplace(self, op_of(place.fill_diagonal, (("wrap", wrap),)), (hashable(fill_value),))


def geometric_(self: Tensor, p: float, *, generator=None) -> Tensor:
    """Write numbers of trials up to the first success, of probability ``p``."""
    if not 0 < p < 1:
        rule = f"geometric_ expects p to be in (0, 1), but got p={p}"
        raise OpError(message(f"x.geometric_({p})", f"p={p}", rule, "x.geometric_(0.5)"))
    u = self.detach().new_empty(*self.shape, dtype=_float_of(self)).uniform_(generator=generator)
    found = ((1 - u).log() / _log1m(p)).ceil().clamp(min=1)
    return into(self, found.to(self.dtype), "geometric_")


def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator=None) -> Tensor:
    """Write floats whose logarithms are normal."""
    if std <= 0:
        rule = f"log_normal_ expects std > 0.0, but found std={std}"
        raise OpError(message(f"x.log_normal_({mean}, {std})", f"std={std}", rule, "x.log_normal_(1, 2)"))
    drawn = self.detach().clone().normal_(mean, std, generator=generator)
    return into(self, drawn.exp(), "log_normal_")


def _float_of(x: Tensor):
    from .dtype import float32

    return x.dtype if x.dtype.is_floating_point else float32


def _log1m(p: float) -> float:
    import math

    return math.log1p(-p)


def apply_(self: Tensor, callable) -> Tensor:
    """Write a Python function of each element into this tensor, on the host."""
    return _mapped(self, callable, ())


def map_(self: Tensor, tensor: Tensor, callable) -> Tensor:
    """Write a Python function of each element and another tensor's into this tensor, on the host."""
    return _mapped(self, callable, (tensor,))


def map2_(self: Tensor, x: Tensor, y: Tensor, callable) -> Tensor:
    """Write a Python function of each element and those of two other tensors into this tensor, on the host."""
    return _mapped(self, callable, (x, y))


def _mapped(self: Tensor, function, others: tuple) -> Tensor:
    import numpy as np

    from .convert import host
    from .indexing import _with

    sources = [np.broadcast_to(host(x.detach()), tuple(self.shape)).reshape(-1).tolist() for x in (self, *others)]
    values = np.array([function(*each) for each in zip(*sources, strict=True)]).astype(self.dtype.np)
    return self.copy_(_with(values.reshape(tuple(self.shape)), self))


_SAME = {
    "absolute_": "abs_", "arccos_": "acos_", "arccosh_": "acosh_", "arcsin_": "asin_", "arcsinh_": "asinh_",
    "arctan_": "atan_", "arctanh_": "atanh_", "arctan2_": "atan2_", "fix_": "trunc_", "greater_": "gt_",
    "greater_equal_": "ge_", "less_": "lt_", "less_equal_": "le_", "negative_": "neg_", "not_equal_": "ne_",
    "true_divide_": "div_",
}  # fmt: skip


def _alias(name: str):
    def method(self: Tensor, *args, **options) -> Tensor:
        return getattr(self, name)(*args, **options)

    method.__doc__ = f"Return `Tensor.{name}`."
    return method


for _name, _target in _SAME.items():
    globals()[_name] = _alias(_target)


# ----------------------------------------------------------------------------------------- facts that scripts ask for


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have one shape."""
    return self.shape == other.shape


def is_inference(self: Tensor) -> bool:
    """Return False: inference mode only stops recording here."""
    return False


def is_distributed(self: Tensor) -> bool:
    """Return False, as PyTorch does of tensors that are no part of a process group; see `is_global`."""
    return False


def is_coalesced(self: Tensor) -> bool:
    """Return True: dense tensors hold every element once."""
    return True


def to_dense(self: Tensor, dtype=None, *, masked_grad: bool = True) -> Tensor:
    """Return the tensor itself, in another dtype if asked: all tensors are dense."""
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
    """Return the dims in the order in which they lie in memory, outermost first.

    With ``ambiguity_check`` a tensor whose strides allow several orders is refused, unless it has exactly one of the
    memory formats listed there.
    """
    strides, shape, n = self.stride(), self.shape, self.ndim
    if ambiguity_check is not False:
        formats = ambiguity_check if isinstance(ambiguity_check, list) else []
        several = 1 in shape or any(a == b for a, b in zip(strides, strides[1:], strict=False))
        if (n > 1 and 0 in strides) or (several and sum(self.is_contiguous(memory_format=f) for f in formats) != 1):
            seen, rule = f"shape {list(shape)}, strides {list(strides)}", "the tensor has a unique dim order"
            raise OpError(message("dim_order(ambiguity_check=...)", seen, rule, "x.dim_order()"))
    if self.is_contiguous():
        return tuple(range(n))
    # A dim that is repeated (stride 0) lies nowhere, and stays where it stands; the others are ranked around it.
    ranked = iter(sorted((d for d in reversed(range(n)) if strides[d]), key=lambda d: (strides[d], shape[d])))
    return tuple(reversed([next(ranked) if strides[d] else d for d in reversed(range(n))]))


def cfloat(self: Tensor) -> Tensor:
    """Return the tensor in complex64."""
    from .dtype import complex64

    return self.to(complex64)


def cdouble(self: Tensor) -> Tensor:
    """Return the tensor in complex128."""
    from .dtype import complex128

    return self.to(complex128)


def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """Return the tensor with elements in ``[-lambd, lambd]`` set to 0."""
    from sbpjax.nn.functional import hardshrink as shrunk

    return shrunk(self, lambd)


def fix(self: Tensor) -> Tensor:
    """Return the tensor rounded towards zero."""
    return self.trunc()


def split_with_sizes(self: Tensor, split_sizes, dim: int = 0) -> tuple:
    """Return views of parts of a dim of the sizes listed."""
    return self.split(list(split_sizes), dim)


def unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple:
    """Return `chunk`."""
    return self.chunk(chunks, dim)


def unsafe_split(self: Tensor, split_size, dim: int = 0) -> tuple:
    """Return `split` into parts of one size."""
    if not isinstance(split_size, int):
        rule = f"argument 'split_size' must be int, not {type(split_size).__name__}"
        raise OpTypeError(message("x.unsafe_split(...)", repr(split_size)[:40], rule, "x.split([...])"))
    return self.split(split_size, dim)


def in_top_k(self: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Return for each row of predictions whether the class in this tensor is among the ``k`` largest."""
    from .forms import in_top_k as among

    return among(self, predictions, k)


def batch_gather(self: Tensor, indices: Tensor) -> Tensor:
    """Return `sbpjax.batch_gather` of this tensor."""
    from .additions import batch_gather as gathered

    return gathered(self, indices)
