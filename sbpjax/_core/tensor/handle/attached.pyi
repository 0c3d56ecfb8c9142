"""Written by `make stubs` from the live package; do not edit."""
# What other modules attach to `Tensor`.

import builtins
import collections.abc
import jax
import numpy
import typing
import sbpjax._core.tensor.handle.types as _types
from sbpjax._core.tensor.handle.attached import ATau as _ATau
from sbpjax._core.tensor.creation.generator import Generator as _Generator
from sbpjax._core.tensor.handle.attached import HistogramEdges as _HistogramEdges
from sbpjax._core.tensor.handle.attached import MantissaExponent as _MantissaExponent
from sbpjax._core.tensor.handle.attached import MinMax as _MinMax
from sbpjax._core.tensor.handle.attached import QR as _QR
from sbpjax._core.tensor.nodes.node import RemovableHandle as _RemovableHandle
from sbpjax._core.tensor.handle.attached import SVD as _SVD
from sbpjax._core.tensor.handle.attached import SignLogabsdet as _SignLogabsdet
from sbpjax._core.tensor.handle.size import Size as _Size
from sbpjax._core.tensor.handle.attached import SolutionCoefficient as _SolutionCoefficient
from sbpjax._core.functions.strides import Storage as _Storage
from sbpjax._core.tensor.handle.tensor import Tensor as _Tensor
from sbpjax._core.tensor.handle.attached import ValuesIndices as _ValuesIndices
from sbpjax._core.functions.settings import memory_format as _memory_format
from sbpjax.sbp.placement import placement as _placement

class ValuesIndices(typing.NamedTuple):
    values: _Tensor
    indices: _Tensor

class MinMax(typing.NamedTuple):
    min: _Tensor
    max: _Tensor

class SVD(typing.NamedTuple):
    U: _Tensor
    S: _Tensor
    V: _Tensor

class SVDh(typing.NamedTuple):
    U: _Tensor
    S: _Tensor
    Vh: _Tensor

class QR(typing.NamedTuple):
    Q: _Tensor
    R: _Tensor

class PLU(typing.NamedTuple):
    P: _Tensor
    L: _Tensor
    U: _Tensor

class SolutionCoefficient(typing.NamedTuple):
    solution: _Tensor
    cloned_coefficient: _Tensor

class MantissaExponent(typing.NamedTuple):
    mantissa: _Tensor
    exponent: _Tensor

class HistogramEdges(typing.NamedTuple):
    hist: _Tensor
    bin_edges: _Tensor

class NativeLayerNorm(typing.NamedTuple):
    output: _Tensor
    mean: _Tensor
    rstd: _Tensor

class NativeBatchNorm(typing.NamedTuple):
    output: _Tensor
    save_mean: _Tensor
    save_invstd: _Tensor

class ATau(typing.NamedTuple):
    a: _Tensor
    tau: _Tensor

class SignLogabsdet(typing.NamedTuple):
    sign: _Tensor
    logabsdet: _Tensor

class Eigen(typing.NamedTuple):
    eigenvalues: _Tensor
    eigenvectors: _Tensor

class LInfo(typing.NamedTuple):
    L: _Tensor
    info: _Tensor

class InverseInfo(typing.NamedTuple):
    inverse: _Tensor
    info: _Tensor

class ResultInfo(typing.NamedTuple):
    result: _Tensor
    info: _Tensor

class LUPivots(typing.NamedTuple):
    LU: _Tensor
    pivots: _Tensor

class LUPivotsInfo(typing.NamedTuple):
    LU: _Tensor
    pivots: _Tensor
    info: _Tensor

class LDPivots(typing.NamedTuple):
    LD: _Tensor
    pivots: _Tensor

class LDPivotsInfo(typing.NamedTuple):
    LD: _Tensor
    pivots: _Tensor
    info: _Tensor

class Lstsq(typing.NamedTuple):
    solution: _Tensor
    residuals: _Tensor
    rank: _Tensor
    singular_values: _Tensor

class Attached:
    @property
    def H(self) -> _Tensor:
        ...
    @property
    def T(self) -> _Tensor:
        ...
    def __abs__(self) -> _Tensor:
        ...
    def __add__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __and__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __array_wrap__(self, array: _types.ArrayLike, context: builtins.object = None, return_scalar: builtins.bool = False) -> _Tensor:
        ...
    def __bool__(self) -> builtins.bool:
        ...
    def __complex__(self) -> builtins.complex:
        ...
    def __contains__(self, element: _types.TensorLike) -> builtins.bool:
        ...
    def __deepcopy__(self, memo: typing.Any) -> _Tensor:
        """Return a copy; of the result of an op a leaf off the tape, as in OneFlow, where PyTorch raises."""
    def __delitem__(self, key: builtins.object) -> None:
        ...
    def __div__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __dlpack__(self, **options: builtins.object) -> builtins.object:
        """Export the memory without a copy; see the array API standard. A write in place here does not change it."""
    def __dlpack_device__(self) -> builtins.tuple[builtins.int, builtins.int]:
        ...
    def __eq__(self, other: builtins.object) -> _Tensor:
        ...
    def __float__(self) -> builtins.float:
        ...
    def __floordiv__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __format__(self, spec: builtins.str) -> builtins.str:
        """Return the formatted number of a 0-d tensor, the printed form of any other (and of a `Parameter`)."""
    def __ge__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __getitem__(self, item: builtins.int | _Tensor | builtins.slice | None | builtins.ellipsis | collections.abc.Sequence[builtins.object] | numpy.ndarray) -> _Tensor:
        """Return the elements that an index names: a view for basic indexing, else a new tensor."""
    def __gt__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __iadd__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __iand__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __idiv__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __ifloordiv__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __ilshift__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __imod__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __imul__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __index__(self) -> builtins.int:
        ...
    def __int__(self) -> builtins.int:
        ...
    def __invert__(self) -> _Tensor:
        ...
    def __ior__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __ipow__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __irshift__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __isub__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __iter__(self) -> typing.Iterator[_Tensor]:
        ...
    def __itruediv__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __ixor__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __le__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __long__(self) -> builtins.int:
        ...
    def __lshift__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __lt__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __matmul__(self, other: _Tensor) -> _Tensor:
        ...
    def __mod__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __mul__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __ne__(self, other: builtins.object) -> _Tensor:
        ...
    def __neg__(self) -> _Tensor:
        ...
    def __nonzero__(self) -> builtins.bool:
        ...
    def __or__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __pos__(self) -> _Tensor:
        ...
    def __pow__(self, exponent: _types.TensorLike) -> _Tensor:
        """Return ``self ** exponent``; a number as exponent is a static attribute, whose gradient needs no logarithm."""
    def __radd__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rand__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rdiv__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __reduce_ex__(self, protocol: builtins.object) -> builtins.object:
        ...
    def __repr__(self) -> builtins.str:
        ...
    def __reversed__(self) -> _Tensor:
        ...
    def __rfloordiv__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rlshift__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rmatmul__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rmod__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rmul__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __ror__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rpow__(self, base: _types.TensorLike) -> _Tensor:
        ...
    def __rrshift__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rshift__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rsub__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rtruediv__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __rxor__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __setitem__(self, item: builtins.int | _Tensor | builtins.slice | None | builtins.ellipsis | collections.abc.Sequence[builtins.object] | numpy.ndarray, value: _types.TensorLike) -> None:
        """Write a value, broadcast, to the elements that an index names."""
    def __setstate__(self, state: builtins.object) -> None:
        """Set attributes from a pickle; the elements came with `__reduce_ex__`."""
    def __str__(self) -> builtins.str:
        ...
    def __sub__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __truediv__(self, other: _types.TensorLike) -> _Tensor:
        ...
    def __xor__(self, other: _types.TensorLike) -> _Tensor:
        ...
    _base: typing.Any
    _is_view: typing.Any
    _made_of: typing.Any
    _mixed: typing.Any
    _regenerate: typing.Any
    _repr_html_: typing.Any
    _set_payload: typing.Any
    def abs(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the absolute value; its gradient at 0 and NaN is 0 (that of ``lax.abs`` is 1 and NaN)."""
    def abs_(self) -> _Tensor:
        """Write the result of `abs` into the first tensor, which keeps its layout."""
    def absolute(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the absolute value; its gradient at 0 and NaN is 0 (that of ``lax.abs`` is 1 and NaN)."""
    def absolute_(self) -> _Tensor:
        """Write the result of `abs` into the first tensor, which keeps its layout."""
    def acos(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse cosine."""
    def acos_(self) -> _Tensor:
        """Write the result of `acos` into the first tensor, which keeps its layout."""
    def acosh(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse hyperbolic cosine."""
    def acosh_(self) -> _Tensor:
        """Write the result of `acosh` into the first tensor, which keeps its layout."""
    def add(self, other: _types.TensorLike | None = None, *more: builtins.object, alpha: builtins.float = 1, inplace: builtins.bool = False, out: _Tensor | None = None, inputs: collections.abc.Sequence[_Tensor] | None = None) -> _Tensor:
        """Return ``input + alpha * other``, or the sum of several tensors, given one by one or as a list, as one op.

        Args:
            input: a tensor or a number; or a list of tensors.
            more: further tensors.
            alpha: factor of `other`.
            inplace: write the sum into `input`.
            out: a tensor to write the sum into.
            inputs: the list of tensors by OneFlow's name.
        """
    def add_(self, other: _types.TensorLike, alpha: _types.TensorLike = 1) -> _Tensor:
        """Write the result of `add` into the first tensor, which keeps its layout."""
    def addbmm(self, batch1: _Tensor, batch2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
        """Return beta * input + alpha * the sum over the stack of batch1 @ batch2."""
    def addbmm_(self, batch1: _Tensor, batch2: _Tensor, beta: _types.TensorLike = 1, alpha: _types.TensorLike = 1) -> _Tensor:
        """Write `addbmm` into this tensor and return it; one that broadcasts gets the product's shape, as in PyTorch."""
    def addcdiv(self, tensor1: _Tensor, tensor2: _Tensor, *, value: _types.TensorLike = 1, out: _Tensor | None = None) -> _Tensor:
        """Return input + value * tensor1 / tensor2.

        Args:
            value: factor of the quotient.
        """
    def addcdiv_(self, tensor1: _Tensor, tensor2: _Tensor, value: _types.TensorLike = 1) -> _Tensor:
        """Write the result of `addcdiv` into the first tensor, which keeps its layout."""
    def addcmul(self, tensor1: _Tensor, tensor2: _Tensor, *, value: _types.TensorLike = 1, out: _Tensor | None = None) -> _Tensor:
        """Return input + value * tensor1 * tensor2.

        Args:
            value: factor of the product.
        """
    def addcmul_(self, tensor1: _Tensor, tensor2: _Tensor, value: _types.TensorLike = 1) -> _Tensor:
        """Write the result of `addcmul` into the first tensor, which keeps its layout."""
    def addmm(self, mat1: _Tensor, mat2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
        """Return beta * input + alpha * (mat1 @ mat2), with input broadcast.

        Args:
            beta: factor of ``input``.
            alpha: factor of the product.
        """
    def addmm_(self, mat1: _Tensor, mat2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1) -> _Tensor:
        """Write the result of `addmm` into the first tensor, which keeps its layout."""
    def addmv(self, mat: _Tensor, vec: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
        """Return beta * input + alpha * (mat @ vec), a matrix times a vector."""
    def addmv_(self, mat: _Tensor, vec: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1) -> _Tensor:
        """Write the result of `addmv` into the first tensor, which keeps its layout."""
    def addr(self, vec1: _Tensor, vec2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
        """Return beta * input + alpha * outer(vec1, vec2)."""
    def addr_(self, vec1: _Tensor, vec2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1) -> _Tensor:
        """Write the result of `addr` into the first tensor, which keeps its layout."""
    def adjoint(self) -> _Tensor:
        """Return matrices with their last two dims exchanged and, if complex, conjugated."""
    def all(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return whether all elements are nonzero; bool, or uint8 for uint8."""
    def allclose(self, other: _Tensor, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> builtins.bool:
        """Return whether all elements are close.

        Args:
            rtol: tolerance relative to ``other``.
            atol: absolute tolerance.
            equal_nan: whether NaN is close to NaN.
        """
    def amax(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return the maximum over ``dim``; ties share the gradient evenly, NaN wins."""
    def amin(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return the minimum over ``dim``; ties share the gradient evenly, NaN wins."""
    def aminmax(self, *, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, out: _Tensor | None = None) -> _MinMax:
        """Return the pair of `amin` and `amax`."""
    def angle(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the angle to the positive real axis: of real numbers 0 or π, and NaN of NaN."""
    def any(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return whether any element is nonzero; bool, or uint8 for uint8."""
    def apply_(self, callable: typing.Any) -> _Tensor:
        """Write a Python function of each element into this tensor, on the host."""
    def arccos(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse cosine."""
    def arccos_(self) -> _Tensor:
        """Write the result of `acos` into the first tensor, which keeps its layout."""
    def arccosh(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse hyperbolic cosine."""
    def arccosh_(self) -> _Tensor:
        """Write the result of `acosh` into the first tensor, which keeps its layout."""
    def arcsin(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse sine."""
    def arcsin_(self) -> _Tensor:
        """Write the result of `asin` into the first tensor, which keeps its layout."""
    def arcsinh(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse hyperbolic sine."""
    def arcsinh_(self) -> _Tensor:
        """Write the result of `asinh` into the first tensor, which keeps its layout."""
    def arctan(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse tangent."""
    def arctan2(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the angle of the point (other, input)."""
    def arctan2_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `atan2` into the first tensor, which keeps its layout."""
    def arctan_(self) -> _Tensor:
        """Write the result of `atan` into the first tensor, which keeps its layout."""
    def arctanh(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse hyperbolic tangent."""
    def arctanh_(self) -> _Tensor:
        """Write the result of `atanh` into the first tensor, which keeps its layout."""
    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the index of the first maximum along ``dim`` or in the flattened input; int64 by default; NaN is largest.

        Args:
            dim: the dim, or None for the flattened tensor.
            dtype: an integer dtype of the result.
        """
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the index of the first minimum along ``dim`` or in the flattened input; int64 by default; NaN is least.

        Args:
            dim: the dim, or None for the flattened tensor.
            dtype: an integer dtype of the result.
        """
    def argsort(self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False) -> _Tensor:
        """Return the int64 indices that sort input along ``dim``; always stable.

        Args:
            descending: from the largest on.
            stable: accepted; sorting is stable always.
        """
    def argwhere(self, dtype: _types.DTypeLike | None = None) -> _Tensor:
        """Return the indices of the elements that are not zero, one row each; dtypes as in `unique`."""
    def as_strided(self, size: builtins.tuple[builtins.int, ...], stride: builtins.tuple[builtins.int, ...], storage_offset: builtins.int | None = None) -> _Tensor:
        """Return a view of the storage with the sizes, strides and offset given, in elements."""
    def as_strided_(self, size: _types.IntOrInts, stride: _types.IntOrInts, storage_offset: builtins.int | None = None) -> _Tensor:
        """Make this tensor show its storage with the sizes, strides and offset given."""
    def as_strided_scatter(self, src: _Tensor, size: builtins.tuple[builtins.int, ...], stride: builtins.tuple[builtins.int, ...], storage_offset: builtins.int | None = None) -> _Tensor:
        """Return a copy with ``src`` written into the part that `as_strided` selects."""
    def as_subclass(self, cls: builtins.type) -> _Tensor:
        """Return a tensor of a subclass over the same storage and tape."""
    def asin(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse sine."""
    def asin_(self) -> _Tensor:
        """Write the result of `asin` into the first tensor, which keeps its layout."""
    def asinh(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse hyperbolic sine."""
    def asinh_(self) -> _Tensor:
        """Write the result of `asinh` into the first tensor, which keeps its layout."""
    def atan(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse tangent."""
    def atan2(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the angle of the point (other, input)."""
    def atan2_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `atan2` into the first tensor, which keeps its layout."""
    def atan_(self) -> _Tensor:
        """Write the result of `atan` into the first tensor, which keeps its layout."""
    def atanh(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse hyperbolic tangent."""
    def atanh_(self) -> _Tensor:
        """Write the result of `atanh` into the first tensor, which keeps its layout."""
    def backward(self, gradient: _Tensor | None = None, retain_graph: builtins.bool | None = None, create_graph: builtins.bool = False, inputs: collections.abc.Sequence[_Tensor] | None = None) -> None:
        """Compute the gradients of this tensor with respect to the leaves; see `sbpjax.autograd.backward`.

        Args:
            gradient: the gradient of this tensor, required for several elements.
            retain_graph: keep the graph for another backward; by default as ``create_graph``.
            create_graph: record the backward, so that it can be differentiated.
            inputs: if given, only these tensors get a ``.grad``.
        """
    def baddbmm(self, batch1: _Tensor, batch2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
        """Return beta * input + alpha * (batch1 @ batch2) for stacks of matrices, with input broadcast.

        Args:
            beta: factor of ``input``.
            alpha: factor of the product.
        """
    def baddbmm_(self, batch1: _Tensor, batch2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1) -> _Tensor:
        """Write the result of `baddbmm` into the first tensor, which keeps its layout."""
    def batch_gather(self, indices: _Tensor) -> _Tensor:
        """Return ``x[b, index[b, m]]``: rows by an index per leading dims."""
    def bernoulli(self, p: builtins.float | None = None, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, inplace: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
        """Return 1 with the probabilities in ``input`` (or with ``p``), else 0; in a dtype, or written into ``input``.

        Args:
            input: probabilities.
            p: one probability for all instead.
        """
    def bernoulli_(self, p: _types.TensorLike = 0.5, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None) -> _Tensor:
        """Write 1 with probability ``p`` (a number or a tensor of probabilities), else 0; ``dtype`` is the tensor's own."""
    def bfloat16(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.bfloat16."""
    def bincount(self, weights: _Tensor | None = None, minlength: builtins.int = 0) -> _Tensor:
        """Return how often each non-negative integer occurs, or the sum of its weights.

        Args:
            input: a vector of integers, none negative.
            weights: a weight per element.
            minlength: the least size of the result.
        """
    def bitwise_and(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the bitwise conjunction of integers or bools."""
    def bitwise_and_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `bitwise_and` into the first tensor, which keeps its layout."""
    def bitwise_left_shift(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return input << other."""
    def bitwise_left_shift_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `bitwise_left_shift` into the first tensor, which keeps its layout."""
    def bitwise_not(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the bits of an integer or bool flipped."""
    def bitwise_not_(self) -> _Tensor:
        """Write the result of `bitwise_not` into the first tensor, which keeps its layout."""
    def bitwise_or(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the bitwise disjunction of integers or bools."""
    def bitwise_or_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `bitwise_or` into the first tensor, which keeps its layout."""
    def bitwise_right_shift(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return input >> other, keeping the sign."""
    def bitwise_right_shift_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `bitwise_right_shift` into the first tensor, which keeps its layout."""
    def bitwise_xor(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the bitwise exclusive disjunction of integers or bools."""
    def bitwise_xor_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `bitwise_xor` into the first tensor, which keeps its layout."""
    def bmm(self, mat2: _Tensor, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, alpha: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
        """Return the products of two stacks of matrices, ``(B, M, K)`` and ``(B, K, N)``.

        Args:
            transpose_a: swap the last two dims of ``input`` first.
            transpose_b: swap the last two dims of ``mat2`` first.
            alpha: factor of the product.
        """
    def bool(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.bool."""
    def broadcast_to(self, size: _types.IntOrInts) -> _Tensor:
        """Return `expand` to a size."""
    def byte(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.uint8."""
    def cast(self, dtype: _types.DTypeLike) -> _Tensor:
        """Return the tensor in another dtype; itself if it has that dtype."""
    def cauchy_(self, median: builtins.float = 0.0, sigma: builtins.float = 1.0, *, generator: _Generator | None = None) -> _Tensor:
        """Write floats of the Cauchy distribution."""
    def cdouble(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in complex128."""
    def ceil(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the smallest integer value not below input; integers stay."""
    def ceil_(self) -> _Tensor:
        """Write the result of `ceil` into the first tensor, which keeps its layout."""
    def celu(self, alpha: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
        """Return max(input, 0) + min(0, alpha * (e**(input / alpha) - 1))."""
    def cfloat(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in complex64."""
    def chalf(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Raise: JAX has no complex numbers of two 16-bit floats."""
    def char(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.int8."""
    def check_meta_consistency(self) -> None:
        """Do nothing: one process makes a global tensor, so its ranks cannot disagree on shape, dtype or sbp."""
    def cholesky(self, upper: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return ``linalg.cholesky(input, upper=upper)``."""
    def cholesky_inverse(self, upper: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse of the matrix whose Cholesky factor is given."""
    def cholesky_solve(self, input2: _Tensor, upper: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return x with ``A x = input``, where ``input2`` is the Cholesky factor of A."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
        """Return at most ``chunks`` views of equal parts of a dim; the last may be shorter.

        Args:
            chunks: how many at most.
        """
    def clamp(self, min: _types.TensorLike | None = None, max: _types.TensorLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return input limited to [min, max]; at a bound the whole gradient goes to input, and a NaN has none.

        Args:
            input: array of any dtype but bool.
            min: number, array or None.
            max: number, array or None; wins where it is below ``min``.
        """
    def clamp_(self, min: _types.TensorLike | None = None, max: _types.TensorLike | None = None) -> _Tensor:
        """Write the result of `clamp` into the first tensor, which keeps its layout."""
    def clamp_max(self, max: _types.TensorLike, *, out: _Tensor | None = None) -> _Tensor:
        """Return input limited from above."""
    def clamp_max_(self, max: _types.TensorLike) -> _Tensor:
        """Write the result of `clamp_max` into the first tensor, which keeps its layout."""
    def clamp_min(self, min: _types.TensorLike, *, out: _Tensor | None = None) -> _Tensor:
        """Return input limited from below."""
    def clamp_min_(self, min: _types.TensorLike) -> _Tensor:
        """Write the result of `clamp_min` into the first tensor, which keeps its layout."""
    def clip(self, min: _types.TensorLike | None = None, max: _types.TensorLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return input limited to [min, max]; at a bound the whole gradient goes to input, and a NaN has none.

        Args:
            input: array of any dtype but bool.
            min: number, array or None.
            max: number, array or None; wins where it is below ``min``.
        """
    def clip_(self, min: _types.TensorLike | None = None, max: _types.TensorLike | None = None) -> _Tensor:
        """Write the result of `clamp` into the first tensor, which keeps its layout."""
    def clone(self, *, memory_format: _memory_format | None = None) -> _Tensor:
        """Return a copy, on the tape."""
    def conj(self) -> _Tensor:
        """Return a view of the complex conjugate; a real tensor itself."""
    def conj_physical(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the complex conjugate; real numbers stay."""
    def conj_physical_(self) -> _Tensor:
        """Write the result of `conj_physical` into the first tensor, which keeps its layout."""
    def const_data_ptr(self) -> builtins.int:
        """Return the address of the first element: that of its storage, plus the view's offset; 0 if it is empty.

        A write in place may move the storage: arrays of JAX do not change. A global tensor that is split or partial is
        nowhere in one piece: its storage is copied to the host's memory, gathered from all ranks, and the copy lives as
        long as a tensor whose address was read.
        """
    def contiguous(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor itself if it is contiguous, else a copy."""
    def contiguous_(self) -> _Tensor:
        """Make this tensor contiguous, with memory of its own if it is not."""
    def copy_(self, source: _Tensor, non_blocking: builtins.bool = False) -> _Tensor:
        """Write another tensor's values, broadcast and cast, into this one.

        Args:
            source: a tensor that broadcasts to this one. A NumPy array may be written into a leaf that requires grad
                without `no_grad`, since no gradient goes to it.
            non_blocking: accepted.
        """
    def copysign(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the size of input with the sign of other (also of -0.0)."""
    def copysign_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `copysign` into the first tensor, which keeps its layout."""
    def corrcoef(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the correlations of variables in the rows of input."""
    def cos(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the cosine."""
    def cos_(self) -> _Tensor:
        """Write the result of `cos` into the first tensor, which keeps its layout."""
    def cosh(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the hyperbolic cosine."""
    def cosh_(self) -> _Tensor:
        """Write the result of `cosh` into the first tensor, which keeps its layout."""
    def count_nonzero(self, dim: _types.IntOrInts | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the int64 number of nonzero elements over ``dim``."""
    def cov(self, *, correction: builtins.int = 1, fweights: _Tensor | None = None, aweights: _Tensor | None = None) -> _Tensor:
        """Return the covariances ``(V, V)`` of V variables in the rows of input, their samples in its columns.

        Args:
            input: ``(V, N)``, or ``(N,)`` for one variable; that of one variable is 0-d.
            correction: taken off the number of samples.
            fweights: how often each sample counts: integers ``(N,)``.
            aweights: how much each sample counts: floats ``(N,)``.
        """
    def cpu(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor on the CPU; ``memory_format`` is accepted, there is one."""
    def cross(self, other: _Tensor, dim: builtins.int | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the cross product along a dim of size 3; by default the first such dim."""
    def cuda(self, device: _types.DeviceLike | None = None, non_blocking: builtins.bool = False, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor on a GPU; ``non_blocking`` and ``memory_format`` are accepted, as by `to`."""
    def cummax(self, dim: builtins.int, *, out: _Tensor | None = None) -> _ValuesIndices:
        """Return the running maximum along ``dim`` and the int64 place of its last occurrence; NaN is the largest."""
    def cummin(self, dim: builtins.int, *, out: _Tensor | None = None) -> _ValuesIndices:
        """Return the running minimum along ``dim`` and the int64 place of its last occurrence; NaN is the smallest."""
    def cumprod(self, dim: builtins.int, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the running product along ``dim``; integers and bools multiply in int64.

        Args:
            dtype: cast to it first; by default integers and bools go to int64.
        """
    def cumprod_(self, dim: builtins.int, *, dtype: _types.DTypeLike | None = None) -> _Tensor:
        """Write `cumprod` into this tensor and return it; ``dtype`` is the tensor's own."""
    def cumsum(self, dim: builtins.int, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the running sum along ``dim``; integers and bools add up in int64.

        Args:
            dtype: cast to it first; by default integers and bools go to int64.
        """
    def cumsum_(self, dim: builtins.int, *, dtype: _types.DTypeLike | None = None) -> _Tensor:
        """Write `cumsum` into this tensor and return it; ``dtype`` is the tensor's own."""
    @property
    def data(self) -> _Tensor:
        """`detach`, but writes through it do not count as changes for backward."""
    @data.setter
    def data(self, value: _Tensor) -> None: ...
    def data_ptr(self) -> builtins.int:
        """Return the address of the first element: that of its storage, plus the view's offset; 0 if it is empty.

        A write in place may move the storage: arrays of JAX do not change. A global tensor that is split or partial is
        nowhere in one piece: its storage is copied to the host's memory, gathered from all ranks, and the copy lives as
        long as a tensor whose address was read.
        """
    def deg2rad(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return degrees as radians."""
    def deg2rad_(self) -> _Tensor:
        """Write the result of `deg2rad` into the first tensor, which keeps its layout."""
    def det(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the determinants of square matrices; the gradient at a singular one is 0, as torch's."""
    def detach(self) -> _Tensor:
        """Return a tensor over the same storage that is a leaf without grad."""
    def detach_(self) -> _Tensor:
        """Take the tensor off the tape, in place."""
    def diag(self, diagonal: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
        """Return the diagonal of a matrix, or the matrix with a vector as its diagonal.

        Args:
            diagonal: the number of the diagonal; positive ones are above the main one.
        """
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1, *, out: _Tensor | None = None) -> _Tensor:
        """Return matrices over two new dims, with the last dim of input on their diagonal."""
    def diagflat(self, offset: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
        """Return the matrix with the elements of input on a diagonal."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> _Tensor:
        """Return a view of a diagonal of two dims, as a new last dim."""
    def diagonal_scatter(self, src: _Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with src on a diagonal of two dims."""
    def diff(self, n: builtins.int = 1, dim: builtins.int = -1, prepend: _Tensor | None = None, append: _Tensor | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the differences of neighbours along a dim, n times over; of the tensor between two others, if given.

        No difference (``n=0``) is the tensor itself, without the others.
        """
    def digamma(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the derivative of lgamma; at 0 it is infinite, with the sign opposite to the zero's."""
    def digamma_(self) -> _Tensor:
        """Write the result of `digamma` into the first tensor, which keeps its layout."""
    def dim(self) -> builtins.int:
        ...
    def dim_order(self, *, ambiguity_check: builtins.bool = False) -> builtins.tuple[builtins.int, ...]:
        """Return the dims in memory order, outermost first.

        With ``ambiguity_check`` a tensor whose strides allow several orders is an error, unless it has exactly one of the
        memory formats listed there.
        """
    def dist(self, other: _Tensor, p: builtins.float = 2.0, *, out: _Tensor | None = None) -> _Tensor:
        """Return the p-norm of input - other, over all elements."""
    def div(self, other: _types.TensorLike, *, rounding_mode: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
        """Return input / other.

        Args:
            input: any array or number.
            other: any array or number, broadcast with ``input``.
            rounding_mode: None divides truly (integers become float32); ``"trunc"`` rounds towards zero and ``"floor"``
                down, both keep an integer dtype and have gradient zero.
        """
    def div_(self, other: _types.TensorLike, rounding_mode: builtins.str | None = None) -> _Tensor:
        """Write the result of `div` into the first tensor, which keeps its layout."""
    def divide(self, other: _types.TensorLike, *, rounding_mode: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
        """Return input / other.

        Args:
            input: any array or number.
            other: any array or number, broadcast with ``input``.
            rounding_mode: None divides truly (integers become float32); ``"trunc"`` rounds towards zero and ``"floor"``
                down, both keep an integer dtype and have gradient zero.
        """
    def divide_(self, other: _types.TensorLike, rounding_mode: builtins.str | None = None) -> _Tensor:
        """Write the result of `div` into the first tensor, which keeps its layout."""
    def dot(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the inner product of two vectors."""
    def double(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.float64."""
    def dsplit(self, indices_or_sections: _types.IntOrInts) -> builtins.tuple[_Tensor, ...]:
        """Return `tensor_split` along dim 2."""
    def element_size(self) -> builtins.int:
        ...
    def eq(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input == other."""
    def eq_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `eq` into the first tensor, which keeps its layout."""
    def equal(self, other: _Tensor) -> builtins.bool:
        """Return whether shape and all elements agree."""
    def erf(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the error function."""
    def erf_(self) -> _Tensor:
        """Write the result of `erf` into the first tensor, which keeps its layout."""
    def erfc(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return 1 - erf(input)."""
    def erfc_(self) -> _Tensor:
        """Write the result of `erfc` into the first tensor, which keeps its layout."""
    def erfinv(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverse of erf."""
    def erfinv_(self) -> _Tensor:
        """Write the result of `erfinv` into the first tensor, which keeps its layout."""
    def exp(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return e**input."""
    def exp2(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return 2**input."""
    def exp2_(self) -> _Tensor:
        """Write the result of `exp2` into the first tensor, which keeps its layout."""
    def exp_(self) -> _Tensor:
        """Write the result of `exp` into the first tensor, which keeps its layout."""
    def expand(self, *sizes: _types.IntOrInts) -> _Tensor:
        """Return a view with dims of size 1 repeated, and new leading dims; -1 keeps a size.

        Args:
            sizes: the sizes, as numbers or one tuple.
        """
    def expand_as(self, other: _Tensor) -> _Tensor:
        """Return `expand` to the shape of another tensor."""
    def expm1(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return e**input - 1, exact near 0."""
    def expm1_(self) -> _Tensor:
        """Write the result of `expm1` into the first tensor, which keeps its layout."""
    def exponential_(self, lambd: builtins.float = 1.0, generator: _Generator | None = None) -> _Tensor:
        """Write floats of the exponential distribution."""
    def fill_(self, value: _types.TensorLike) -> _Tensor:
        """Write one number into every element.

        Args:
            value: a number, or a tensor of one element.
        """
    def fill_diagonal_(self, fill_value: _Tensor, wrap: builtins.bool = False) -> _Tensor:
        """Write the result of `fill_diagonal` into the first tensor, which keeps its layout."""
    def fix(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input rounded towards zero; integers stay."""
    def fix_(self) -> _Tensor:
        """Write the result of `trunc` into the first tensor, which keeps its layout."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> _Tensor:
        """Return the dims from ``start_dim`` to ``end_dim`` as one.

        Args:
            start_dim: the first dim that is joined.
            end_dim: the last one.
        """
    def flip(self, *dims: _types.IntOrInts) -> _Tensor:
        """Return input with the given dims reversed.

        Args:
            dims: one or several.
        """
    def fliplr(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with dim 1 reversed."""
    def flipud(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with dim 0 reversed."""
    def float(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.float32."""
    def float_power(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return input ** other computed in float64, or complex128 where one is complex."""
    def float_power_(self, exponent: _types.TensorLike) -> _Tensor:
        """Write ``self ** exponent``, which is float64 or complex128, into this tensor and return it."""
    def floor(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the largest integer value not above input; integers stay."""
    def floor_(self) -> _Tensor:
        """Write the result of `floor` into the first tensor, which keeps its layout."""
    def floor_divide(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return input / other rounded down, in the promoted dtype."""
    def floor_divide_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `floor_divide` into the first tensor, which keeps its layout."""
    def fmax(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the larger element; a NaN counts as missing."""
    def fmax_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `fmax` into the first tensor, which keeps its layout."""
    def fmin(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the smaller element; a NaN counts as missing."""
    def fmin_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `fmin` into the first tensor, which keeps its layout."""
    def fmod(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the remainder of input / other with the sign of input (C's ``fmod``)."""
    def fmod_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `fmod` into the first tensor, which keeps its layout."""
    def frac(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the fractional part, input - trunc(input)."""
    def frac_(self) -> _Tensor:
        """Write the result of `frac` into the first tensor, which keeps its layout."""
    def frexp(self, *, out: _Tensor | None = None) -> _MantissaExponent:
        """Return mantissas, 0.5 or more and less than 1 in size, and int32 exponents."""
    def gather(self, dim: builtins.int, index: _Tensor, sparse_grad: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return ``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other dims; the shape of the index.

        Args:
            index: integers, of as many dims.
        """
    def gcd(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the greatest common divisors, never negative."""
    def gcd_(self, other: _Tensor) -> _Tensor:
        """Write the result of `gcd` into the first tensor, which keeps its layout."""
    def ge(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input >= other."""
    def ge_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `ge` into the first tensor, which keeps its layout."""
    def gelu(self, approximate: builtins.str = 'none', *, out: _Tensor | None = None) -> _Tensor:
        """Return input * Φ(input), with Φ the normal distribution function.

        Args:
            input: floats of any shape.
            approximate: ``"none"`` uses erf, ``"tanh"`` the tanh formula.
        """
    def geometric_(self, p: builtins.float, *, generator: _Generator | None = None) -> _Tensor:
        """Write numbers of trials up to the first success, of probability ``p``."""
    def geqrf(self, *, out: _Tensor | None = None) -> _ATau:
        """Return the Householder reflections of a QR factorisation with its upper triangle, as LAPACK's ``geqrf``."""
    def ger(self, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return the products of all pairs of two vectors' elements."""
    def get_device(self) -> builtins.int:
        """Return the index of the device; -1 on the CPU."""
    def global_id(self) -> builtins.int:
        """Return a number that no other living tensor has."""
    def global_to_global(self, placement: _placement | None = None, sbp: _types.SbpLike | None = None, *, grad_sbp: _types.SbpLike | None = None, check_meta: builtins.bool = True, check_values: builtins.bool | None = None, copy: builtins.bool = False) -> _Tensor:
        """Return this tensor as a global tensor on ``placement`` in ``sbp``.

        In a job of several processes every process's local tensor is one part: under split the parts are joined, under
        partial_sum added, under broadcast they are equal. To divide a whole that every process holds, make it broadcast
        first: ``x.to_global(placement, broadcast).to_global(sbp=split(0))``.

        Args:
            self: a local or global tensor.
            placement: the target placement; a global tensor's own by default.
            sbp: the target nd-sbp; a global tensor's own by default.
            grad_sbp: the nd-sbp of the gradient on the way back; by default the source's.
            check_meta: whether processes compare shape and dtype of their local tensors first; without it they are taken to
                be equal.
            check_values: processes compare the values of local tensors that become broadcast, by a digest of them (about
                1 ms per MB). Where they differ, the first rank's are taken with a warning; True raises instead, and False
                does not compare. Nothing is compared under ``check_meta=False`` or ``SBPJAX_CHECK=off``.
            copy: return a new tensor even if nothing changes.
        """
    def greater(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input > other."""
    def greater_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `gt` into the first tensor, which keeps its layout."""
    def greater_equal(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input >= other."""
    def greater_equal_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `ge` into the first tensor, which keeps its layout."""
    def gt(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input > other."""
    def gt_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `gt` into the first tensor, which keeps its layout."""
    def half(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.float16."""
    def hardshrink(self, lambd: builtins.float = 0.5, inplace: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return input, and 0 where |input| <= lambd."""
    def hash_tensor(self, dim: _types.IntOrInts = (), *, keepdim: builtins.bool = False, mode: builtins.int = 0, out: _Tensor | None = None) -> _Tensor:
        """Return the exclusive or of the bits of the elements, as float64 or int64, over ``dim``; uint64.

        Args:
            dim: dim or dims; () for all.
            mode: 0, the exclusive or.
        """
    def heaviside(self, values: _types.TensorLike, *, out: _Tensor | None = None) -> _Tensor:
        """Return 0 where input < 0, 1 where input > 0, and values where input is 0."""
    def heaviside_(self, values: _types.TensorLike) -> _Tensor:
        """Write the result of `heaviside` into the first tensor, which keeps its layout."""
    def histc(self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0, *, out: _Tensor | None = None) -> _Tensor:
        """Return the counts of elements in equal bins from ``min`` to ``max`` (the data's range if both are 0)."""
    def histogram(self, bins: builtins.int | _Tensor, *, range: builtins.tuple[builtins.float, builtins.float] | None = None, weight: _Tensor | None = None, density: builtins.bool = False, out: _Tensor | None = None) -> _HistogramEdges:
        """Return the number (or the weight) of elements in each bin, and the edges of the bins."""
    def hsplit(self, indices_or_sections: _types.IntOrInts) -> builtins.tuple[_Tensor, ...]:
        """Return `tensor_split` along dim 1, or 0 of a vector."""
    def hypot(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return sqrt(x² + y²), without overflow; infinite where one of them is."""
    def hypot_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `hypot` into the first tensor, which keeps its layout."""
    def i0(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the modified Bessel function of the first kind of order 0."""
    def i0_(self) -> _Tensor:
        """Write the result of `i0` into the first tensor, which keeps its layout."""
    def igamma(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the lower regularized incomplete gamma function; the gradient is that of other."""
    def igamma_(self, other: _Tensor) -> _Tensor:
        """Write the result of `igamma` into the first tensor, which keeps its layout."""
    def igammac(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the upper regularized incomplete gamma function; the gradient is that of other."""
    def igammac_(self, other: _Tensor) -> _Tensor:
        """Write the result of `igammac` into the first tensor, which keeps its layout."""
    @property
    def imag(self) -> _Tensor:
        """Return a view of the imaginary part of a complex tensor."""
    @imag.setter
    def imag(self, value: _Tensor) -> None: ...
    def in_top_k(self, predictions: _Tensor, k: builtins.int) -> _Tensor:
        """Return for each row whether fewer than k classes are predicted above the target's class."""
    def index_add(self, dim: builtins.int, index: _Tensor, source: _Tensor, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with ``alpha * source`` added to the slices that a vector names.

        Args:
            index: a vector of integers.
            source: the dtype of ``input``, with the index's size in the dim.
            alpha: factor of the source.
        """
    def index_add_(self, dim: builtins.int, index: _Tensor, source: _Tensor, alpha: builtins.complex = 1) -> _Tensor:
        """Write the result of `index_add` into the first tensor, which keeps its layout."""
    def index_copy(self, dim: builtins.int, index: _Tensor, source: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with the slices that a vector names replaced by those of ``source``."""
    def index_copy_(self, dim: builtins.int, index: _Tensor, source: _Tensor) -> _Tensor:
        """Write the result of `index_copy` into the first tensor, which keeps its layout."""
    def index_fill(self, dim: builtins.int, index: _Tensor, value: _Tensor) -> _Tensor:
        """Return input with the slices that a vector names, also from the end, filled with a number (or 0-d array)."""
    def index_fill_(self, dim: builtins.int, index: _Tensor, value: _Tensor) -> _Tensor:
        """Write the result of `index_fill` into the first tensor, which keeps its layout."""
    def index_put(self, indices: collections.abc.Sequence[_Tensor | None], values: _types.TensorLike, accumulate: builtins.bool = False) -> _Tensor:
        """Return a copy with values written (or added) to the elements that a tuple of index tensors names."""
    def index_put_(self, indices: collections.abc.Sequence[_Tensor | None], values: _types.TensorLike, accumulate: builtins.bool = False) -> _Tensor:
        """Write (or add) values to the elements that a tuple of index tensors names."""
    def index_reduce(self, dim: builtins.int, index: _Tensor, source: _Tensor, reduce: builtins.str, *, include_self: builtins.bool = True, out: _Tensor | None = None) -> _Tensor:
        """Return input with slices of source reduced into the slices of a dim that index names."""
    def index_reduce_(self, dim: builtins.int, index: _Tensor, source: _Tensor, reduce: builtins.str, include_self: builtins.bool = True) -> _Tensor:
        """Write the result of `index_reduce` into the first tensor, which keeps its layout."""
    def index_select(self, dim: builtins.int, index: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return the slices of input along ``dim`` that a vector names.

        Args:
            index: a vector of integers.
        """
    def inner(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the inner products over the last dims: ``(..., K)`` and ``(___, K)`` give ``(..., ___)``."""
    def int(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.int32."""
    def inverse(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the inverses of matrices."""
    def is_coalesced(self) -> builtins.bool:
        """Return True: dense tensors hold every element once."""
    def is_complex(self) -> builtins.bool:
        """Return whether the dtype is a complex one."""
    def is_conj(self) -> builtins.bool:
        """Return whether the tensor is a conjugated view."""
    def is_contiguous(self, memory_format: _memory_format | None = None) -> builtins.bool:
        """Return whether the elements lie in row-major order without gaps."""
    @property
    def is_cpu(self) -> builtins.bool:
        ...
    @property
    def is_cuda(self) -> builtins.bool:
        ...
    def is_distributed(self) -> builtins.bool:
        """Return False, as PyTorch does of tensors that are no part of a process group; see `is_global`."""
    def is_floating_point(self) -> builtins.bool:
        """Return whether the dtype is a floating-point one."""
    def is_inference(self) -> builtins.bool:
        """Return False: inference mode only stops recording here."""
    @property
    def is_ipu(self) -> builtins.bool:
        ...
    @property
    def is_meta(self) -> builtins.bool:
        """Return whether a tensor has no data."""
    @property
    def is_mkldnn(self) -> builtins.bool:
        ...
    @property
    def is_mps(self) -> builtins.bool:
        ...
    @property
    def is_mtia(self) -> builtins.bool:
        ...
    def is_neg(self) -> builtins.bool:
        """Return False: no view here is negated without being computed."""
    @property
    def is_nested(self) -> builtins.bool:
        ...
    def is_nonzero(self) -> builtins.bool:
        """Return whether the one element is not zero."""
    def is_offloaded(self) -> builtins.bool:
        """Return whether the elements were moved to the host's memory."""
    def is_pinned(self) -> builtins.bool:
        ...
    @property
    def is_quantized(self) -> builtins.bool:
        ...
    def is_same_size(self, other: _Tensor) -> builtins.bool:
        """Return whether two tensors have one shape."""
    def is_set_to(self, tensor: _Tensor) -> builtins.bool:
        """Return whether another tensor shows the same storage with the same offset, size and strides."""
    def is_shared(self) -> builtins.bool:
        ...
    def is_signed(self) -> builtins.bool:
        """Return whether the dtype has negative numbers."""
    @property
    def is_sparse(self) -> builtins.bool:
        ...
    @property
    def is_sparse_csr(self) -> builtins.bool:
        ...
    @property
    def is_view(self) -> builtins.bool:
        """Return whether this tensor is a view of another one."""
    @property
    def is_vulkan(self) -> builtins.bool:
        ...
    @property
    def is_xla(self) -> builtins.bool:
        ...
    @property
    def is_xpu(self) -> builtins.bool:
        ...
    def isclose(self, other: _types.TensorLike, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return where |input - other| <= atol + rtol * |other|; equal infinities are close."""
    def isfinite(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return where input is neither infinite nor NaN."""
    def isinf(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return where input is infinite; of a complex number, where either part is."""
    def isnan(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return where input is NaN."""
    def isneginf(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return where input is -inf."""
    def isposinf(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return where input is +inf."""
    def isreal(self) -> _Tensor:
        """Return where the imaginary part is 0."""
    def istft(self, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: _Tensor | None = None, center: builtins.bool = True, normalized: builtins.bool = False, onesided: builtins.bool | None = None, length: builtins.int | None = None, return_complex: builtins.bool = False) -> _Tensor:
        """Return the inverse of `stft`: the signal of ``input``, for the same arguments."""
    def item(self) -> builtins.int | builtins.float:
        """Return the one element of a tensor as a Python number."""
    @property
    def itemsize(self) -> builtins.int:
        ...
    def jax(self, mesh: builtins.object = None) -> jax.Array:
        """Return the payload as a `jax.Array`: of a global tensor the sharded logical array.

        Args:
            self: a tensor; a global one without partial sums and without unevenly split dims.
            mesh: name the mesh axes as this mesh does.
        """
    def kaiming_normal_(self, a: builtins.float = 0, mode: builtins.str = 'fan_in', nonlinearity: builtins.str = 'leaky_relu', generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
        """Fill normally with deviation gain / sqrt(fan); arguments as in `kaiming_uniform_`."""
    def kaiming_uniform_(self, a: builtins.float = 0, mode: builtins.str = 'fan_in', nonlinearity: builtins.str = 'leaky_relu', generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
        """Fill uniformly in ±gain * sqrt(3 / fan).

        Args:
            tensor: the weight.
            a: the negative slope of the leaky relu after the layer.
            mode: ``"fan_in"`` keeps the variance forwards, ``"fan_out"`` backwards.
            nonlinearity: the activation after the layer.
            generator: the random generator.
            data_format: ``"NCHW"`` for a weight `(out, in, kernel...)`, ``"NHWC"`` for `(out, kernel..., in)`.

        Source: He et al., Delving Deep into Rectifiers (2015).
        """
    def kron(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the Kronecker product."""
    def kthvalue(self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _ValuesIndices:
        """Return the k-th smallest element along ``dim`` (k from 1) and its int64 index."""
    def lcm(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the least common multiples, never negative."""
    def lcm_(self, other: _Tensor) -> _Tensor:
        """Write the result of `lcm` into the first tensor, which keeps its layout."""
    def ldexp(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return ``x * 2**other``; integers other do not change the dtype of floats input."""
    def ldexp_(self, other: _Tensor) -> _Tensor:
        """Write the result of `ldexp` into the first tensor, which keeps its layout."""
    def le(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input <= other."""
    def le_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `le` into the first tensor, which keeps its layout."""
    def lerp(self, end: _types.TensorLike, weight: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return input + weight * (end - input), computed from the nearer end as torch does.

        Args:
            weight: a number or a tensor; 0 gives ``input``, 1 gives ``end``.
        """
    def lerp_(self, end: _types.TensorLike, weight: _Tensor) -> _Tensor:
        """Write the result of `lerp` into the first tensor, which keeps its layout."""
    def less(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input < other."""
    def less_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `lt` into the first tensor, which keeps its layout."""
    def less_equal(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input <= other."""
    def less_equal_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `le` into the first tensor, which keeps its layout."""
    def lgamma(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return log|Γ(input)|."""
    def lgamma_(self) -> _Tensor:
        """Write the result of `lgamma` into the first tensor, which keeps its layout."""
    def load(self) -> _Tensor:
        """Bring offloaded elements back to the devices."""
    def local_shards(self) -> builtins.dict[builtins.int, _Tensor]:
        """Return ``{rank: numpy array}``: the part on each rank of this process; of a partial sum, its summand."""
    def local_to_global(self, placement: _placement | None = None, sbp: _types.SbpLike | None = None, *, grad_sbp: _types.SbpLike | None = None, check_meta: builtins.bool = True, check_values: builtins.bool | None = None, copy: builtins.bool = False) -> _Tensor:
        """Return this tensor as a global tensor on ``placement`` in ``sbp``.

        In a job of several processes every process's local tensor is one part: under split the parts are joined, under
        partial_sum added, under broadcast they are equal. To divide a whole that every process holds, make it broadcast
        first: ``x.to_global(placement, broadcast).to_global(sbp=split(0))``.

        Args:
            self: a local or global tensor.
            placement: the target placement; a global tensor's own by default.
            sbp: the target nd-sbp; a global tensor's own by default.
            grad_sbp: the nd-sbp of the gradient on the way back; by default the source's.
            check_meta: whether processes compare shape and dtype of their local tensors first; without it they are taken to
                be equal.
            check_values: processes compare the values of local tensors that become broadcast, by a digest of them (about
                1 ms per MB). Where they differ, the first rank's are taken with a warning; True raises instead, and False
                does not compare. Nothing is compared under ``check_meta=False`` or ``SBPJAX_CHECK=off``.
            copy: return a new tensor even if nothing changes.
        """
    def log(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the natural logarithm."""
    def log10(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the logarithm to base 10."""
    def log10_(self) -> _Tensor:
        """Write the result of `log10` into the first tensor, which keeps its layout."""
    def log1p(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return log(1 + input), exact near 0."""
    def log1p_(self) -> _Tensor:
        """Write the result of `log1p` into the first tensor, which keeps its layout."""
    def log2(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the logarithm to base 2."""
    def log2_(self) -> _Tensor:
        """Write the result of `log2` into the first tensor, which keeps its layout."""
    def log_(self) -> _Tensor:
        """Write the result of `log` into the first tensor, which keeps its layout."""
    def log_normal_(self, mean: builtins.float = 1.0, std: builtins.float = 2.0, *, generator: _Generator | None = None) -> _Tensor:
        """Write floats whose logarithms are normal."""
    def log_softmax(self, dim: builtins.int | None = None, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the logarithm of the softmax along ``dim``, computed without its underflow."""
    def logaddexp(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return log(e**input + e**other) without overflow."""
    def logaddexp2(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return ``log2(2**input + 2**other)`` without overflow."""
    def logaddexp2_(self, other: _Tensor) -> _Tensor:
        """Write the result of `logaddexp2` into the first tensor, which keeps its layout."""
    def logaddexp_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `logaddexp` into the first tensor, which keeps its layout."""
    def logcumsumexp(self, dim: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
        """Return the logarithm of the running sum of exponentials along ``dim``."""
    def logdet(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the logarithm of determinants; NaN for a negative one."""
    def logical_and(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where both are nonzero."""
    def logical_and_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `logical_and` into the first tensor, which keeps its layout."""
    def logical_not(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return where input is zero."""
    def logical_not_(self) -> _Tensor:
        """Write the result of `logical_not` into the first tensor, which keeps its layout."""
    def logical_or(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where at least one is nonzero."""
    def logical_or_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `logical_or` into the first tensor, which keeps its layout."""
    def logical_xor(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where exactly one is nonzero."""
    def logical_xor_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `logical_xor` into the first tensor, which keeps its layout."""
    def logit(self, eps: builtins.float | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return log(input / (1 - input)), with input clamped to [eps, 1 - eps] if ``eps`` is given."""
    def logit_(self, eps: builtins.float | None = None) -> _Tensor:
        """Write the result of `logit` into the first tensor, which keeps its layout."""
    def logsumexp(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return log(sum(e**input)) over ``dim`` without overflow; integers become float32."""
    def long(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.int64."""
    def lt(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input < other."""
    def lt_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `lt` into the first tensor, which keeps its layout."""
    def lu(self, pivot: builtins.bool = True, get_infos: builtins.bool = False, *, out: _Tensor | None = None) -> builtins.tuple[_Tensor, _Tensor] | builtins.tuple[_Tensor, _Tensor, _Tensor]:
        """Return ``tuple(linalg.lu_factor_ex(A, pivot=pivot))[:3 if get_infos else 2]``."""
    def lu_solve(self, LU_data: _Tensor, LU_pivots: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return ``linalg.lu_solve(LU_data, LU_pivots, b)``."""
    @property
    def mH(self) -> _Tensor:
        """Return matrices with their last two dims exchanged and, if complex, conjugated."""
    @property
    def mT(self) -> _Tensor:
        ...
    def map2_(self, x: _Tensor, y: _Tensor, callable: typing.Any) -> _Tensor:
        """Write a Python function of each element and those of two other tensors into this tensor, on the host."""
    def map_(self, tensor: _Tensor, callable: typing.Any) -> _Tensor:
        """Write a Python function of each element and another tensor's into this tensor, on the host."""
    def masked_fill(self, mask: _Tensor, value: _Tensor) -> _Tensor:
        """Return input with ``value`` (number or 0-d array, cast to input's dtype) where the mask holds; input and mask broadcast.

        Args:
            mask: bools, or integers, of which all but 0 count; broadcast to ``input``.
            value: a number, or a tensor of one element.
        """
    def masked_fill_(self, mask: _Tensor, value: _Tensor) -> _Tensor:
        """Write the result of `masked_fill` into the first tensor, which keeps its layout."""
    def masked_scatter(self, mask: _Tensor, source: _Tensor) -> _Tensor:
        """Return input with the elements of ``source``, in order, at the places where the mask holds."""
    def masked_scatter_(self, mask: _Tensor, source: _Tensor) -> _Tensor:
        """Write the result of `masked_scatter` into the first tensor, which keeps its layout."""
    def masked_select(self, mask: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return the elements where the mask holds (both broadcast) as a vector; a number holds that is not 0.

        Args:
            mask: bools or numbers, broadcast with ``input``.
        """
    def matmul(self, other: _Tensor, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, alpha: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
        """Return ``alpha`` times the matrix product, with PyTorch's rules for 1-d inputs and batch dims.

        Args:
            input: a vector, a matrix, or a stack of them.
            other: likewise.
            transpose_a: swap the last two dims of `input` first; it keeps its layout.
            transpose_b: swap the last two dims of `other` first; it keeps its layout.
            alpha: factor of the product.
            out: a tensor to write it into.
        """
    def matrix_exp(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the exponentials of square matrices: the series of ``x / 2**s``, squared s times."""
    def matrix_power(self, n: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
        """Return the n-th power of square matrices; a negative one is that of the inverse."""
    @typing.overload
    def max(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the largest element; along ``dim`` with the indices; with another tensor the elementwise maximum.

        Args:
            dim: the dim, or None for all elements; or the other tensor.
            other: a tensor to compare with, element by element.
        """
    @typing.overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False, *, out: collections.abc.Sequence[_Tensor] | None = None) -> _ValuesIndices:
        """Return the largest element; along ``dim`` with the indices; with another tensor the elementwise maximum.

        Args:
            dim: the dim, or None for all elements; or the other tensor.
            other: a tensor to compare with, element by element.
        """
    @typing.overload
    def max(self, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return the largest element; along ``dim`` with the indices; with another tensor the elementwise maximum.

        Args:
            dim: the dim, or None for all elements; or the other tensor.
            other: a tensor to compare with, element by element.
        """
    def maximum(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the larger element; NaN if either is NaN; a tie gives half of the gradient to each, NaN all of it."""
    def maximum_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `maximum` into the first tensor, which keeps its layout."""
    def mean(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
        """Return the mean over ``dim``; the input or ``dtype`` is floating point."""
    @typing.overload
    def median(self) -> _Tensor:
        """Return the lower median; along ``dim`` with its index."""
    @typing.overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> _ValuesIndices:
        """Return the lower median; along ``dim`` with its index."""
    @typing.overload
    def min(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the smallest element; along ``dim`` with the indices; with another tensor the elementwise minimum.

        Args:
            dim: the dim, or None for all elements; or the other tensor.
            other: a tensor to compare with, element by element.
        """
    @typing.overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False, *, out: collections.abc.Sequence[_Tensor] | None = None) -> _ValuesIndices:
        """Return the smallest element; along ``dim`` with the indices; with another tensor the elementwise minimum.

        Args:
            dim: the dim, or None for all elements; or the other tensor.
            other: a tensor to compare with, element by element.
        """
    @typing.overload
    def min(self, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return the smallest element; along ``dim`` with the indices; with another tensor the elementwise minimum.

        Args:
            dim: the dim, or None for all elements; or the other tensor.
            other: a tensor to compare with, element by element.
        """
    def minimum(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the smaller element; NaN if either is NaN; a tie gives half of the gradient to each, NaN all of it."""
    def minimum_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `minimum` into the first tensor, which keeps its layout."""
    def mish(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input * tanh(softplus(input))."""
    def mm(self, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return the product of two matrices."""
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _ValuesIndices:
        """Return the most frequent element along ``dim`` (the smallest of equally frequent ones) and its last index."""
    def moveaxis(self, source: _types.IntOrInts, destination: _types.IntOrInts) -> _Tensor:
        """Return a view with dims moved to other positions.

        Args:
            source: a dim, or several.
            destination: where they go.
        """
    def movedim(self, source: _types.IntOrInts, destination: _types.IntOrInts) -> _Tensor:
        """Return a view with dims moved to other positions.

        Args:
            source: a dim, or several.
            destination: where they go.
        """
    def msort(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input sorted along dim 0."""
    def mul(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return input * other; of bools, their conjunction."""
    def mul_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `mul` into the first tensor, which keeps its layout."""
    def multinomial(self, num_samples: builtins.int, replacement: builtins.bool = False, generator: _Generator | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return indices drawn by the weights in ``input``.

        Args:
            input: weights ``(C,)`` or ``(N, C)``.
            num_samples: how many are drawn.
            replacement: whether one may be drawn again.
        """
    def multiply(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return input * other; of bools, their conjunction."""
    def multiply_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `mul` into the first tensor, which keeps its layout."""
    def mv(self, vec: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return the product of a matrix and a vector."""
    def mvlgamma(self, p: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
        """Return the logarithm of the multivariate gamma function of dimension ``p``; NaN below its domain."""
    def mvlgamma_(self, p: builtins.int) -> _Tensor:
        """Write the result of `mvlgamma` into the first tensor, which keeps its layout."""
    @property
    def name(self) -> builtins.str:
        ...
    def nan_to_num(self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with NaN and infinities replaced; the infinities by default by the dtype's extreme values."""
    def nan_to_num_(self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> _Tensor:
        """Write the result of `nan_to_num` into the first tensor, which keeps its layout."""
    def nanmean(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the mean over ``dim`` of the elements that are not NaN."""
    @typing.overload
    def nanmedian(self) -> _Tensor:
        """Return the lower median, ignoring NaN; along ``dim`` with its index."""
    @typing.overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = False) -> _ValuesIndices:
        """Return the lower median, ignoring NaN; along ``dim`` with its index."""
    def nanquantile(self, q: _types.TensorLike, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: builtins.str = 'linear', out: _Tensor | None = None) -> _Tensor:
        """Return the `quantile` of the elements that are not NaN; arguments, result and errors as there."""
    def nansum(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return the sum over ``dim`` with NaN counted as 0."""
    def narrow(self, dim: builtins.int, start: builtins.float, length: builtins.int) -> _Tensor:
        """Return ``length`` indices of a dim from ``start`` on.

        Args:
            start: the first index.
            length: how many.
        """
    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
        """Return a copy of `narrow`."""
    @property
    def nbytes(self) -> builtins.int:
        ...
    def ndimension(self) -> builtins.int:
        ...
    def ne(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input != other."""
    def ne_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `ne` into the first tensor, which keeps its layout."""
    def neg(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return -input; not for bool."""
    def neg_(self) -> _Tensor:
        """Write the result of `neg` into the first tensor, which keeps its layout."""
    def negative(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return -input; not for bool."""
    def negative_(self) -> _Tensor:
        """Write the result of `neg` into the first tensor, which keeps its layout."""
    def nelement(self) -> builtins.int:
        ...
    def new(self, *data: _types.ArrayLike, **options: builtins.object) -> _Tensor:
        """Return a tensor of this one's dtype and device: empty, of a size, or with the content given."""
    def new_empty(self, *size: _types.IntOrInts, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
        """Return `empty` of a size, with the dtype and layout of this tensor unless told otherwise."""
    def new_empty_strided(self, size: _types.IntOrInts, stride: _types.IntOrInts, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
        """Return `empty_strided` with the dtype of this tensor unless one is given."""
    def new_full(self, size: collections.abc.Sequence[builtins.int], fill_value: _types.TensorLike, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
        """Return `full` of a size, with the dtype and layout of this tensor unless others are given."""
    def new_ones(self, *size: _types.IntOrInts, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
        """Return `ones` of a size, with the dtype and layout of this tensor unless told otherwise."""
    def new_tensor(self, data: _types.ArrayLike, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, requires_grad: builtins.bool = False, placement: _placement | None = None, sbp: _types.SbpLike | None = None) -> _Tensor:
        """Return `tensor` of data with this tensor's dtype unless one is given; on its device if that is local."""
    def new_zeros(self, *size: _types.IntOrInts, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
        """Return `zeros` of a size, with the dtype and layout of this tensor unless told otherwise."""
    def nextafter(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the floats next to input in the direction of other; the gradient is that of input alone."""
    def nextafter_(self, other: _Tensor) -> _Tensor:
        """Write the result of `nextafter` into the first tensor, which keeps its layout."""
    @typing.overload
    def nonzero(self, as_tuple: typing.Literal[False] = False) -> _Tensor:
        """Return the indices of the elements that are not zero: one row each, or as one vector per dim.

        Args:
            as_tuple: one vector per dim instead.
        """
    @typing.overload
    def nonzero(self, as_tuple: typing.Literal[True]) -> builtins.tuple[_Tensor, ...]:
        """Return the indices of the elements that are not zero: one row each, or as one vector per dim.

        Args:
            as_tuple: one vector per dim instead.
        """
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = -1, out: _Tensor | None = None) -> _Tensor:
        """Return ``size`` rows of `nonzero`, those beyond the number of nonzero elements filled with a number."""
    def norm(self, p: builtins.float | builtins.str | None = 'fro', dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
        """Return the p-norm over some dims; ``"fro"`` is the 2-norm, ``"nuc"`` the sum of a matrix's singular values.

        Args:
            p: a number, inf, -inf, ``"fro"`` or ``"nuc"``.
        """
    def normal_(self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: _Generator | None = None) -> _Tensor:
        """Write normal floats.

        Args:
            mean: their mean.
            std: their deviation.
        """
    def not_equal(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return where input != other."""
    def not_equal_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `ne` into the first tensor, which keeps its layout."""
    def numel(self) -> builtins.int:
        """Return the number of elements."""
    def numpy(self, *, force: builtins.bool = False) -> numpy.ndarray:
        """Return the logical value as a NumPy array (a copy).

        Args:
            force: also of a tensor that requires grad.
        """
    def offload(self) -> _Tensor:
        """Move the elements to the host's memory until `load`; on the CPU they are there already."""
    def orgqr(self, input2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return the first N columns of the product of Householder reflections, as LAPACK's ``orgqr``."""
    def ormqr(self, tau: _Tensor, other: _Tensor, left: builtins.bool = True, transpose: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return the product of ``other`` with all columns of a product of Householder reflections, as LAPACK's ``ormqr``.

        Args:
            input: ``(..., M, K)``, the reflections below the diagonal, as `geqrf` returns them.
            tau: ``(..., K)``.
            other: ``(..., M, N)``, or ``(..., N, M)`` from the right.
            left: multiply from the left.
            transpose: multiply by the conjugate transpose.
        """
    def orthogonal_(self, gain: builtins.float = 1, generator: _Generator | None = None) -> _Tensor:
        """Fill with a (semi-)orthogonal matrix; all dims after the first count as one.

        Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks (2014).
        """
    def outer(self, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return the products of all pairs of two vectors' elements."""
    def permute(self, *dims: _types.IntOrInts) -> _Tensor:
        """Return a view with the dims in another order.

        Args:
            dims: all dims in their new order.
        """
    def pin_memory(self) -> _Tensor:
        ...
    def pinverse(self, rcond: builtins.float | None = None, hermitian: builtins.bool = False, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, out: _Tensor | None = None) -> _Tensor:
        """Return the pseudoinverses; singular values up to ``max(atol, rtol * the largest)`` count as 0."""
    def polygamma(self, n: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
        """Return the n-th derivative of digamma."""
    def polygamma_(self, n: builtins.int) -> _Tensor:
        """Write the result of `polygamma` into the first tensor, which keeps its layout."""
    def positive(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input; not for bool."""
    def positive_(self) -> _Tensor:
        """Write the result of `positive` into the first tensor, which keeps its layout."""
    def pow(self, exponent: _types.TensorLike, *, inplace: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
        """Return ``input ** exponent``; either may be a number; with ``inplace=True`` written into ``input``."""
    def pow_(self, exponent: _types.TensorLike) -> _Tensor:
        """Write ``self ** exponent`` into this tensor and return it."""
    def prelu(self, weight: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return input where positive, else weight * input.

        Args:
            input: ``(N, C, ...)``; with one dim or none, the channel dim counts as 1.
            weight: one slope, or one per channel (dim 1).
        """
    def prod(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
        """Return the product over ``dim``; its gradient is right with zeros too.

        Args:
            dtype: cast to it first; by default integers and bools go to int64.
        """
    def put(self, index: _Tensor, source: _Tensor, accumulate: builtins.bool = False) -> _Tensor:
        """Return input with elements of source written (or added) where a flat index names, counted from the end if < 0."""
    def put_(self, index: _Tensor, source: _Tensor, accumulate: builtins.bool = False) -> _Tensor:
        """Write the result of `put` into the first tensor, which keeps its layout."""
    def qr(self, some: builtins.bool = True, *, out: _Tensor | None = None) -> _QR:
        """Return ``linalg.qr(input, 'reduced' if some else 'complete')``."""
    def quantile(self, q: _types.TensorLike, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: builtins.str = 'linear', out: _Tensor | None = None) -> _Tensor:
        """Return the q-quantiles along a dim, or of all elements; NaN where there is any NaN.

        Args:
            input: float32 or float64.
            q: a number in [0, 1], or several as a sequence or a vector, which make a new first dim. Of a tensor there is a
                gradient with ``"linear"``.
            dim: the dim, or None.
            keepdim: keep the dim with size 1.
            interpolation: between neighbours: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"`` or ``"nearest"``.
        """
    def rad2deg(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return radians as degrees."""
    def rad2deg_(self) -> _Tensor:
        """Write the result of `rad2deg` into the first tensor, which keeps its layout."""
    def random_(self, start: builtins.int | None = None, to: builtins.int | None = None, *, generator: _Generator | None = None) -> _Tensor:
        """Write integers in [start, to); with one number, in [0, number)."""
    def ravel(self) -> _Tensor:
        """Return the elements in one dim: a view of a contiguous tensor, a copy of any other, as in PyTorch."""
    @property
    def real(self) -> _Tensor:
        """Return a view of the real part; a real tensor itself."""
    @real.setter
    def real(self, value: _Tensor) -> None: ...
    def reciprocal(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return 1 / input."""
    def reciprocal_(self) -> _Tensor:
        """Write the result of `reciprocal` into the first tensor, which keeps its layout."""
    def record_stream(self, stream: typing.Any) -> None:
        """Do nothing: XLA orders its own work."""
    def register_hook(self, hook: typing.Callable[[_Tensor], builtins.object]) -> _RemovableHandle:
        """Call ``hook(grad)`` when this tensor's gradient is known; its result, unless None, replaces the gradient."""
    def register_post_accumulate_grad_hook(self, hook: typing.Callable[[_Tensor], builtins.object]) -> _RemovableHandle:
        """Call ``hook(tensor)`` after a leaf's ``.grad`` was updated."""
    def relu(self, inplace: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
        """Return max(input, 0), with gradient 0 at 0."""
    def relu_(self) -> _Tensor:
        """Write the result of `relu` into the first tensor, which keeps its layout."""
    def remainder(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the remainder of input / other with the sign of other (Python's ``%``)."""
    def remainder_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `remainder` into the first tensor, which keeps its layout."""
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with the slices of a dim scaled down to a p-norm of at most ``maxnorm``."""
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> _Tensor:
        """Write the result of `renorm` into the first tensor, which keeps its layout."""
    def repeat(self, *repeats: _types.IntOrInts) -> _Tensor:
        """Return input repeated that often along each dim; surplus entries are new dims in front.

        Args:
            repeats: a number per dim, at least as many as dims.
        """
    def repeat_interleave(self, repeats: _types.IntOrInts | None = None, dim: builtins.int | None = None, output_size: builtins.int | None = None) -> _Tensor:
        """Return each element (along a dim) repeated; ``repeats`` is a number, or one number per index.

        Alone, ``input`` is taken for the repeats of 0, 1, 2, …

        Args:
            repeats: a number, or a tensor of one per index.
            dim: the dim; None for the flattened tensor.
            output_size: the size of the result in the dim, if it is known.
        """
    def reshape(self, *shape: _types.IntOrInts) -> _Tensor:
        """Return the elements in another shape: a view where strides allow it, else a copy.

        Args:
            shape: the sizes, as numbers or one tuple; one may be -1.
        """
    def reshape_as(self, other: _Tensor) -> _Tensor:
        """Return `reshape` in the shape of another tensor."""
    def resize(self, *size: _types.IntOrInts) -> _Tensor:
        """Return `resize_` of a copy."""
    def resize_(self, *size: _types.IntOrInts, memory_format: _memory_format | None = None) -> _Tensor:
        """Give this tensor another size; its elements stay, in row-major order, new ones are not initialised."""
    def resize_as(self, other: _Tensor) -> _Tensor:
        """Return `resize_as_` of a copy."""
    def resize_as_(self, other: _Tensor, memory_format: _memory_format | None = None) -> _Tensor:
        """Give this tensor the size of another one."""
    def resolve_conj(self) -> _Tensor:
        """Return the tensor itself, or a copy of a conjugated view."""
    def resolve_neg(self) -> _Tensor:
        """Return the tensor itself: no view here is negated without being computed."""
    def retain_grad(self) -> None:
        """Keep the gradient of a computed tensor in its ``.grad``; on a leaf it does nothing."""
    def roll(self, shifts: _types.IntOrInts, dims: _types.IntOrInts | None = None) -> _Tensor:
        """Return input with its elements moved along dims, those beyond the end coming in at the front.

        Args:
            shifts: how far, a number or one per dim.
            dims: one or several; by default the flattened tensor is rolled.
        """
    def rot90(self, k: builtins.int = 1, dims: _types.IntOrInts = (0, 1), *, out: _Tensor | None = None) -> _Tensor:
        """Return input turned by k quarter turns in the plane of two dims."""
    def round(self, decimals: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
        """Return input rounded half to even at ``decimals`` digits; integers stay.

        Args:
            decimals: how many decimals are kept; negative ones round to tens, hundreds, …
        """
    def round_(self, decimals: builtins.int = 0) -> _Tensor:
        """Write the result of `round` into the first tensor, which keeps its layout."""
    def rsqrt(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return 1 / sqrt(input)."""
    def rsqrt_(self) -> _Tensor:
        """Write the result of `rsqrt` into the first tensor, which keeps its layout."""
    def rsub(self, other: _types.TensorLike, *, alpha: _types.TensorLike = 1) -> _Tensor:
        """Return other - alpha * input."""
    def scatter(self, dim: builtins.int, index: _Tensor, src: _Tensor, *, reduce: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
        """Return input with ``out[index[i][j]][j] = src[i][j]`` for dim 0, and so on for other dims.

        Args:
            input: array.
            dim: the dim that is indexed.
            index: integers, of as many dims, in no other dim larger than ``input``.
            src: a tensor at least as large as the index, or a number.
            reduce: None writes, ``"add"`` and ``"multiply"`` combine with the value of ``input``.
        """
    def scatter_(self, dim: builtins.int, index: _Tensor, src: _Tensor, reduce: builtins.str | None = None) -> _Tensor:
        """Write the result of `scatter` into the first tensor, which keeps its layout."""
    def scatter_add(self, dim: builtins.int, index: _Tensor, src: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with ``out[index[i][j]][j] += src[i][j]`` for dim 0, and so on for other dims.

        Args:
            index: integers, of as many dims.
            src: the dtype of ``input``, at least as large as the index.
        """
    def scatter_add_(self, dim: builtins.int, index: _Tensor, src: _Tensor) -> _Tensor:
        """Write the result of `scatter_add` into the first tensor, which keeps its layout."""
    def scatter_reduce(self, dim: builtins.int, index: _Tensor, src: _Tensor, reduce: builtins.str, *, include_self: builtins.bool = True, out: _Tensor | None = None) -> _Tensor:
        """Return input with the elements of src that meet at one place reduced there.

        Args:
            input: array.
            dim: the dim that is indexed.
            index: as for `scatter`.
            src: array of input's dtype.
            reduce: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``; at equal extremes the gradient is shared.
            include_self: whether the element of input takes part.
        """
    def scatter_reduce_(self, dim: builtins.int, index: _Tensor, src: _Tensor, reduce: builtins.str, include_self: builtins.bool = True) -> _Tensor:
        """Write the result of `scatter_reduce` into the first tensor, which keeps its layout."""
    def select(self, dim: builtins.int, index: builtins.int) -> _Tensor:
        """Return one index of a dim; the dim goes away."""
    def select_scatter(self, src: _Tensor, dim: builtins.int, index: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with src at one index of a dim."""
    def selu(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the self-normalising elu."""
    def set_(self, source: _Tensor | None = None, storage_offset: builtins.int = 0, size: _types.IntOrInts | None = None, stride: _types.IntOrInts | None = None) -> _Tensor:
        """Make this tensor show another one's storage; without a source, an empty one."""
    def sgn(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input / |input|, 0 at 0; of real numbers the sign."""
    def sgn_(self) -> _Tensor:
        """Write the result of `sgn` into the first tensor, which keeps its layout."""
    def share_memory_(self) -> _Tensor:
        """Return the tensor; one process drives all devices, so there is no process to share memory with."""
    def short(self, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor in sbpjax.int16."""
    def sigmoid(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return 1 / (1 + e**-input)."""
    def sigmoid_(self) -> _Tensor:
        """Write the result of `sigmoid` into the first tensor, which keeps its layout."""
    def sign(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return -1, 0 or 1 by the sign of input; NaN gives 0."""
    def sign_(self) -> _Tensor:
        """Write the result of `sign` into the first tensor, which keeps its layout."""
    def signbit(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return where the sign is minus, that of -0.0 too."""
    def silu(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input * sigmoid(input)."""
    def sin(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the sine."""
    def sin_(self) -> _Tensor:
        """Write the result of `sin` into the first tensor, which keeps its layout."""
    def sinc(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return sin(πinput) / (πinput), and 1 at 0."""
    def sinc_(self) -> _Tensor:
        """Write the result of `sinc` into the first tensor, which keeps its layout."""
    def sinh(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the hyperbolic sine."""
    def sinh_(self) -> _Tensor:
        """Write the result of `sinh` into the first tensor, which keeps its layout."""
    @typing.overload
    def size(self, dim: None = None) -> _Size:
        """Return the shape, or the size of one dim.

        Args:
            dim: the dim; None for all.
        """
    @typing.overload
    def size(self, dim: builtins.int) -> builtins.int:
        """Return the shape, or the size of one dim.

        Args:
            dim: the dim; None for all.
        """
    def slice_scatter(self, src: _Tensor, dim: builtins.int = 0, start: builtins.int | None = None, end: builtins.int | None = None, step: builtins.int = 1, *, out: _Tensor | None = None) -> _Tensor:
        """Return input with src in a slice of a dim."""
    def slogdet(self, *, out: _Tensor | None = None) -> _SignLogabsdet:
        """Return the sign (a unit complex number) and the logarithm of the absolute value of determinants."""
    def softmax(self, dim: builtins.int | None = None, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return e**input normalised to sum 1 along ``dim``.

        Args:
            input: floats; any sbp.
            dim: the dim of the classes; by default 1, or 0 of tensors with 0, 1 or 3 dims.
        """
    def softmax_(self, dim: builtins.int | None = None, dtype: _types.DTypeLike | None = None) -> _Tensor:
        """Write the result of `softmax` into the first tensor, which keeps its layout."""
    def softplus(self, beta: builtins.float = 1.0, threshold: builtins.float = 20.0, *, out: _Tensor | None = None) -> _Tensor:
        """Return log(1 + e**(beta * input)) / beta, and input where beta * input is above the threshold.

        Args:
            beta: how sharp the bend is.
            threshold: input itself is returned where beta * input is larger.
        """
    def softsign(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input / (1 + |input|)."""
    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False, *, out: _Tensor | None = None) -> _ValuesIndices:
        """Return input sorted along ``dim`` and the int64 indices of its elements; always stable.

        Args:
            descending: from the largest on.
            stable: accepted; sorting is stable always.
        """
    def split(self, split_size_or_sections: _types.IntOrInts | None = None, dim: builtins.int = 0, *, split_size: builtins.int | None = None) -> builtins.tuple[_Tensor, ...]:
        """Return views of consecutive parts of a dim: of one size (the last may be shorter), or of the sizes listed.

        Args:
            split_size_or_sections: one size, or a list of sizes.
            split_size: the size, by OneFlow's name.
        """
    def split_with_sizes(self, split_sizes: collections.abc.Sequence[builtins.int], dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
        """Return views of parts of a dim of the sizes listed."""
    def sqrt(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the square root."""
    def sqrt_(self) -> _Tensor:
        """Write the result of `sqrt` into the first tensor, which keeps its layout."""
    def square(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input * input."""
    def square_(self) -> _Tensor:
        """Write the result of `square` into the first tensor, which keeps its layout."""
    def squeeze(self, dim: _types.IntOrInts | None = None) -> _Tensor:
        """Return a view without dims of size 1: all of them, or those named."""
    def squeeze_(self, dim: _types.IntOrInts | None = None) -> _Tensor:
        """Write `squeeze` into this tensor, which takes the new shape, and return it."""
    def std(self, dim: _types.IntOrInts | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: builtins.int = 1, out: _Tensor | None = None) -> _Tensor:
        """Return the standard deviation, over ``n - correction``.

        Args:
            unbiased: the older form of ``correction``: 1 if true, 0 if not.
            correction: subtracted from the number of elements.
        """
    def stft(self, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: _Tensor | None = None, center: builtins.bool = True, pad_mode: builtins.str = 'reflect', normalized: builtins.bool = False, onesided: builtins.bool | None = None, return_complex: builtins.bool | None = None) -> _Tensor:
        """Return the Fourier transforms of overlapping frames of a signal.

        Args:
            input: ``(samples,)`` or ``(batch, samples)``.
            n_fft: the length of a frame.
            hop_length: from frame to frame; a quarter of ``n_fft`` by default.
            win_length: the length of the window, which is padded to ``n_fft``.
            window: the window; ones by default.
            center: let frame t be centred at ``t * hop_length``, the signal padded on both sides.
            pad_mode: how it is padded then.
            normalized: scale by ``1 / sqrt(n_fft)``.
            onesided: give the first half of the frequencies only; by default for real signals.
            return_complex: give complex numbers, not pairs; required for real signals.
        """
    def storage(self) -> _Storage:
        """Return the memory that this tensor shares with its views, in elements."""
    def storage_offset(self) -> builtins.int:
        """Return where the view starts in its storage, in elements."""
    def storage_type(self) -> builtins.str:
        ...
    @typing.overload
    def stride(self, dim: None = None) -> builtins.tuple[builtins.int, ...]:
        """Return the strides in elements; a global tensor's shards are always contiguous, so are its strides."""
    @typing.overload
    def stride(self, dim: builtins.int) -> builtins.int:
        """Return the strides in elements; a global tensor's shards are always contiguous, so are its strides."""
    def sub(self, other: _types.TensorLike, *, alpha: _types.TensorLike = 1, inplace: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
        """Return input - alpha * other; not for bools.

        Args:
            alpha: factor of ``other``; a float only if the result is one.
        """
    def sub_(self, other: _types.TensorLike, alpha: _types.TensorLike = 1) -> _Tensor:
        """Write the result of `sub` into the first tensor, which keeps its layout."""
    def subtract(self, other: _types.TensorLike, *, alpha: _types.TensorLike = 1, inplace: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
        """Return input - alpha * other; not for bools.

        Args:
            alpha: factor of ``other``; a float only if the result is one.
        """
    def subtract_(self, other: _types.TensorLike, alpha: _types.TensorLike = 1) -> _Tensor:
        """Write the result of `sub` into the first tensor, which keeps its layout."""
    def sum(self, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
        """Return the sum over ``dim`` (None or () for all).

        Args:
            input: any dtype.
            dim: dim, dims or None.
            dtype: cast to it before summing; by default integers and bools go to int64.
        """
    def sum_to_size(self, *size: _types.IntOrInts) -> _Tensor:
        """Return the tensor summed to a shape that broadcasts to its own."""
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True, *, out: _Tensor | None = None) -> _SVD:
        """Return U, S and V with ``input = U diag(S) V^H``."""
    def swapaxes(self, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
        """Return a view with two dims exchanged; or, as in OneFlow, all in the order of ``perm``.

        Args:
            dim0: one dim.
            dim1: the other.
            perm: all dims in their new order.
        """
    def swapaxes_(self, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
        """Write `transpose` into this tensor, which takes the new shape, and return it."""
    def swapdims(self, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
        """Return a view with two dims exchanged; or, as in OneFlow, all in the order of ``perm``.

        Args:
            dim0: one dim.
            dim1: the other.
            perm: all dims in their new order.
        """
    def swapdims_(self, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
        """Write `transpose` into this tensor, which takes the new shape, and return it."""
    def t(self) -> _Tensor:
        """Return the transpose of a matrix; fewer dims stay."""
    def t_(self) -> _Tensor:
        """Write `t` into this tensor, which takes the new shape, and return it."""
    def take(self, index: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
        """Return elements of the flattened input; negative indices count from the end."""
    def take_along_dim(self, indices: _Tensor, dim: builtins.int | None = None, *, out: _Tensor | None = None) -> _Tensor:
        """Return `gather` with input and index broadcast against each other, also from the end; without ``dim`` both flat.

        Args:
            indices: integers, which broadcast with ``input`` but for the dim.
            dim: the dim; None for the flattened tensor.
        """
    def tan(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the tangent."""
    def tan_(self) -> _Tensor:
        """Write the result of `tan` into the first tensor, which keeps its layout."""
    def tanh(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the hyperbolic tangent."""
    def tanh_(self) -> _Tensor:
        """Write the result of `tanh` into the first tensor, which keeps its layout."""
    def tensor_split(self, indices_or_sections: _types.IntOrInts | None = None, dim: builtins.int = 0, *, indices: _types.IntOrInts | None = None, sections: typing.Any = None) -> builtins.tuple[_Tensor, ...]:
        """Return views of parts of a dim: a number of nearly equal ones, or cut at the indices."""
    def tile(self, *dims: _types.IntOrInts) -> _Tensor:
        """Return input repeated along its last dims; fewer numbers than dims leave the first dims alone.

        Args:
            dims: a number per dim.
        """
    @typing.overload
    def to(self, dtype: _types.DTypeLike, non_blocking: builtins.bool = False, copy: builtins.bool = False) -> _Tensor:
        """Return the tensor with another dtype, on another device, or with those of another tensor.

        Args:
            self: the tensor.
            args: a dtype, a device or both, or another tensor.
            dtype: the dtype.
            device: the device.
            copy: return a copy even if nothing changes.
            non_blocking: accepted; transfers never block.
            other: the other tensor, by name.
        """
    @typing.overload
    def to(self, device: _types.DeviceLike | None = None, dtype: _types.DTypeLike | None = None, non_blocking: builtins.bool = False, copy: builtins.bool = False, *, memory_format: _memory_format | None = None) -> _Tensor:
        """Return the tensor with another dtype, on another device, or with those of another tensor.

        Args:
            self: the tensor.
            args: a dtype, a device or both, or another tensor.
            dtype: the dtype.
            device: the device.
            copy: return a copy even if nothing changes.
            non_blocking: accepted; transfers never block.
            other: the other tensor, by name.
        """
    @typing.overload
    def to(self, other: _Tensor, non_blocking: builtins.bool = False, copy: builtins.bool = False) -> _Tensor:
        """Return the tensor with another dtype, on another device, or with those of another tensor.

        Args:
            self: the tensor.
            args: a dtype, a device or both, or another tensor.
            dtype: the dtype.
            device: the device.
            copy: return a copy even if nothing changes.
            non_blocking: accepted; transfers never block.
            other: the other tensor, by name.
        """
    def to_dense(self, dtype: _types.DTypeLike | None = None, *, masked_grad: builtins.bool = True) -> _Tensor:
        """Return the tensor itself, in another dtype if given: all tensors are dense."""
    def to_global(self, placement: _placement | None = None, sbp: _types.SbpLike | None = None, *, grad_sbp: _types.SbpLike | None = None, check_meta: builtins.bool = True, check_values: builtins.bool | None = None, copy: builtins.bool = False) -> _Tensor:
        """Return this tensor as a global tensor on ``placement`` in ``sbp``.

        In a job of several processes every process's local tensor is one part: under split the parts are joined, under
        partial_sum added, under broadcast they are equal. To divide a whole that every process holds, make it broadcast
        first: ``x.to_global(placement, broadcast).to_global(sbp=split(0))``.

        Args:
            self: a local or global tensor.
            placement: the target placement; a global tensor's own by default.
            sbp: the target nd-sbp; a global tensor's own by default.
            grad_sbp: the nd-sbp of the gradient on the way back; by default the source's.
            check_meta: whether processes compare shape and dtype of their local tensors first; without it they are taken to
                be equal.
            check_values: processes compare the values of local tensors that become broadcast, by a digest of them (about
                1 ms per MB). Where they differ, the first rank's are taken with a warning; True raises instead, and False
                does not compare. Nothing is compared under ``check_meta=False`` or ``SBPJAX_CHECK=off``.
            copy: return a new tensor even if nothing changes.
        """
    def to_local(self, *, copy: builtins.bool = False) -> _Tensor:
        """Return the part of a global tensor on this process as a local tensor; with one process, the whole logical value.

        With several processes: the parts of this process's ranks joined along split dims, the value under broadcast, the
        sum of its summands under partial_sum; without elements where it owns no rank of the placement. Nothing is
        communicated.

        Args:
            copy: return a new tensor even if nothing has to be computed.
        """
    def to_numpy(self, *, force: builtins.bool = False) -> numpy.ndarray:
        """Return the logical value as a NumPy array (a copy).

        Args:
            force: also of a tensor that requires grad.
        """
    def to_sparse(self, *args: builtins.object, **options: builtins.object) -> _Tensor:
        """Raise: tensors are dense here."""
    def to_sparse_bsc(self, *args: builtins.object, **options: builtins.object) -> _Tensor:
        """Raise: tensors are dense here."""
    def to_sparse_bsr(self, *args: builtins.object, **options: builtins.object) -> _Tensor:
        """Raise: tensors are dense here."""
    def to_sparse_coo(self, *args: builtins.object, **options: builtins.object) -> _Tensor:
        """Raise: tensors are dense here."""
    def to_sparse_csc(self, *args: builtins.object, **options: builtins.object) -> _Tensor:
        """Raise: tensors are dense here."""
    def to_sparse_csr(self, *args: builtins.object, **options: builtins.object) -> _Tensor:
        """Raise: tensors are dense here."""
    def tolist(self) -> typing.Any:
        """Return the value as nested lists of Python numbers."""
    def topk(self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True, *, out: _Tensor | None = None) -> _ValuesIndices:
        """Return the k largest (or smallest) elements along ``dim``, in order, and their int64 indices.

        Args:
            k: how many.
            largest: whether the largest, not the smallest.
            sorted: accepted; they are in order always.
        """
    def trace(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return the sum of the main diagonal of a matrix; integers add up in int64."""
    def transpose(self, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
        """Return a view with two dims exchanged; or, as in OneFlow, all in the order of ``perm``.

        Args:
            dim0: one dim.
            dim1: the other.
            perm: all dims in their new order.
        """
    def transpose_(self, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
        """Write `transpose` into this tensor, which takes the new shape, and return it."""
    def triangular_solve(self, A: _Tensor, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool = False, *, out: _Tensor | None = None) -> _SolutionCoefficient:
        """Return ``(linalg.solve_triangular(A.mT if transpose else A, b, upper=upper != transpose, unitriangular=unitriangular), A.clone())``."""
    def tril(self, diagonal: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
        """Return the lower triangle of the last two dims, up to ``diagonal``; the rest is 0.

        Args:
            diagonal: the last one that is kept; 0 is the main one, positive ones are above it.
        """
    def tril_(self, diagonal: builtins.int = 0) -> _Tensor:
        """Write the result of `tril` into the first tensor, which keeps its layout."""
    def triu(self, diagonal: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
        """Return the upper triangle of the last two dims, from ``diagonal`` on; the rest is 0.

        Args:
            diagonal: the first one that is kept; 0 is the main one, positive ones are above it.
        """
    def triu_(self, diagonal: builtins.int = 0) -> _Tensor:
        """Write the result of `triu` into the first tensor, which keeps its layout."""
    def true_divide(self, other: _types.TensorLike, *, rounding_mode: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
        """Return input / other.

        Args:
            input: any array or number.
            other: any array or number, broadcast with ``input``.
            rounding_mode: None divides truly (integers become float32); ``"trunc"`` rounds towards zero and ``"floor"``
                down, both keep an integer dtype and have gradient zero.
        """
    def true_divide_(self, other: _types.TensorLike, rounding_mode: builtins.str | None = None) -> _Tensor:
        """Write the result of `div` into the first tensor, which keeps its layout."""
    def trunc(self, *, out: _Tensor | None = None) -> _Tensor:
        """Return input rounded towards zero; integers stay."""
    def trunc_(self) -> _Tensor:
        """Write the result of `trunc` into the first tensor, which keeps its layout."""
    def trunc_normal_(self, mean: builtins.float = 0.0, std: builtins.float = 1.0, a: builtins.float = -2.0, b: builtins.float = 2.0, *, generator: _Generator | None = None) -> _Tensor:
        """Write normal floats limited to [a, b] by drawing again."""
    @typing.overload
    def type(self, dtype: None = None) -> builtins.str:
        """Return the tensor in another dtype (a name such as ``"FloatTensor"`` will do); without one, its type's name."""
    @typing.overload
    def type(self, dtype: _types.DTypeLike, non_blocking: builtins.bool = False) -> _Tensor:
        """Return the tensor in another dtype (a name such as ``"FloatTensor"`` will do); without one, its type's name."""
    def type_as(self, other: _Tensor) -> _Tensor:
        """Return the tensor in the dtype of another one."""
    def unbind(self, dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
        """Return a view of every index of a dim."""
    def unflatten(self, dim: builtins.int, sizes: collections.abc.Sequence[builtins.int]) -> _Tensor:
        """Return one dim as several."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> _Tensor:
        """Return a view of all windows of ``size`` along a dim, every ``step``; the window is a new last dim."""
    def uniform_(self, a: builtins.float = 0.0, b: builtins.float = 1.0, *, generator: _Generator | None = None) -> _Tensor:
        """Write uniform floats in [a, b).

        Args:
            a: the least value.
            b: the values stay below.
        """
    @typing.overload
    def unique(self, sorted: builtins.bool = True, *, dim: builtins.int | None = None, dtype: _types.DTypeLike | None = None) -> _Tensor:
        """Return the distinct elements (or slices of a dim), sorted; optionally each element's index in them, and counts.

        Indices and counts are of int64 (int32 under OneFlow's name, as there), or of the given dtype.

        Args:
            sorted: accepted; elements are sorted always.
            return_inverse: return also where each element is among them.
            return_counts: return also how often each occurs.
            dim: the dim whose slices are compared; None for single elements.
            dtype: the dtype of indices and counts.
        """
    @typing.overload
    def unique(self, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None, *, dtype: _types.DTypeLike | None = None) -> builtins.tuple[_Tensor, ...]:
        """Return the distinct elements (or slices of a dim), sorted; optionally each element's index in them, and counts.

        Indices and counts are of int64 (int32 under OneFlow's name, as there), or of the given dtype.

        Args:
            sorted: accepted; elements are sorted always.
            return_inverse: return also where each element is among them.
            return_counts: return also how often each occurs.
            dim: the dim whose slices are compared; None for single elements.
            dtype: the dtype of indices and counts.
        """
    @typing.overload
    def unique_consecutive(self, *, dim: builtins.int | None = None) -> _Tensor:
        """Return the elements (along a dim, the slices) that differ from their predecessor."""
    @typing.overload
    def unique_consecutive(self, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None) -> builtins.tuple[_Tensor, ...]:
        """Return the elements (along a dim, the slices) that differ from their predecessor."""
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
        """Return at most ``chunks`` views of equal parts of a dim; the last may be shorter.

        Args:
            chunks: how many at most.
        """
    def unsafe_split(self, split_size: builtins.int, dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
        """Return `split` into parts of one size."""
    def unsqueeze(self, dim: builtins.int) -> _Tensor:
        """Return a view with a new dim of size 1.

        Args:
            dim: where the new dim is in the result.
        """
    def unsqueeze_(self, dim: builtins.int) -> _Tensor:
        """Write `unsqueeze` into this tensor, which takes the new shape, and return it."""
    def untyped_storage(self) -> _Storage:
        """Return the memory that this tensor shares with its views, in bytes."""
    def var(self, dim: _types.IntOrInts | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: _types.IntOrInts = 1, out: _Tensor | None = None) -> _Tensor:
        """Return the variance, over ``n - correction``.

        Args:
            unbiased: the older form of ``correction``: 1 if true, 0 if not.
            correction: subtracted from the number of elements.
        """
    def vdot(self, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return the dot product of two vectors, the first conjugated."""
    def view(self, *shape: _types.IntOrInts) -> _Tensor:
        """Return the same elements in another shape, sharing storage; with a dtype, the same bytes read as that dtype.

        Args:
            shape: the sizes, as numbers or one tuple; one may be -1. Or a dtype.
        """
    def view_as(self, other: _Tensor) -> _Tensor:
        """Return `view` in the shape of another tensor."""
    def vsplit(self, indices_or_sections: _types.IntOrInts) -> builtins.tuple[_Tensor, ...]:
        """Return `tensor_split` along dim 0."""
    def where(self, condition: _Tensor, other: _types.TensorLike) -> _Tensor:
        """Return this tensor where the condition holds, else ``other``.

        The condition may also come first, of bools or integers as in OneFlow: ``condition.where(x, y)``.
        """
    def xavier_normal_(self, gain: builtins.float = 1.0, generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
        """Fill normally with deviation gain * sqrt(2 / (fan_in + fan_out))."""
    def xavier_uniform_(self, gain: builtins.float = 1.0, generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
        """Fill uniformly in ±gain * sqrt(6 / (fan_in + fan_out)).

        Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (2010).
        """
    def xlogy(self, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
        """Return input * log(other), and 0 where input is 0 and other is not NaN."""
    def xlogy_(self, other: _types.TensorLike) -> _Tensor:
        """Write the result of `xlogy` into the first tensor, which keeps its layout."""
    def zero_(self) -> _Tensor:
        """Write zeros."""
