"""NumPy versions of the tensor functions that datasets and transforms use, for workers without JAX.

The table `FUNCTIONS` lists them by their name in the public API (``rand``, ``nn.functional.pad``); those in
`METHODS` are methods of `HostTensor` too. Random numbers come from `numpy.random`, which is seeded for each batch.
Functions that are missing here raise a `WorkerError` that names them.
"""

from __future__ import annotations

import contextlib
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from .host_tensors import HostTensor, common_dtype, size_of, wrap_arrays

# ---------------------------------------------------------------------------------------------------------- creation

_MEANINGLESS = {"device": None, "requires_grad": False, "pin_memory": False, "layout": None, "memory_format": None}


def _creation(function: Callable) -> Callable:
    """Drop a function's device and layout arguments, which have no meaning here."""

    def call(*args: Any, **options: Any) -> Any:
        return function(*args, **{k: v for k, v in options.items() if k not in _MEANINGLESS})

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


def _shape(args: tuple, size: Any) -> tuple:
    return tuple(size) if size is not None else size_of(args)


@_creation
def tensor(data: Any, dtype: Any = None) -> HostTensor:
    """Return a copy of data, of float32 for Python floats."""
    array = np.array(data, dtype)
    if dtype is None and not hasattr(data, "dtype") and array.dtype == np.float64 and not _has_arrays(data):
        array = array.astype(np.float32)
    return array.view(HostTensor)


def _has_arrays(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and any(hasattr(x, "dtype") or _has_arrays(x) for x in data)


def from_numpy(array: np.ndarray) -> HostTensor:
    """Return an array as a tensor, sharing its memory."""
    return np.asarray(array).view(HostTensor)


@_creation
def as_tensor(data: Any, dtype: Any = None) -> HostTensor:
    """Return data as a tensor, without a copy where that is possible."""
    return tensor(data, dtype) if dtype is not None or not isinstance(data, np.ndarray) else from_numpy(data)


def _make_host_tensor(values: Any, dtype: Any) -> HostTensor:
    return np.asarray(values).astype(np.float32 if dtype is None else dtype, copy=False).view(HostTensor)


@_creation
def zeros(*args: Any, size: Any = None, dtype: Any = None) -> HostTensor:
    """Return zeros."""
    return _make_host_tensor(np.zeros(_shape(args, size), dtype or np.float32), dtype)


@_creation
def ones(*args: Any, size: Any = None, dtype: Any = None) -> HostTensor:
    """Return ones."""
    return _make_host_tensor(np.ones(_shape(args, size), dtype or np.float32), dtype)


@_creation
def full(size: Any, fill_value: Any, dtype: Any = None) -> HostTensor:
    """Return a value everywhere."""
    return tensor(np.full(size, np.asarray(tensor(fill_value, dtype))))


@_creation
def zeros_like(input: Any, dtype: Any = None) -> HostTensor:
    """Return zeros of another tensor's shape and dtype."""
    return zeros(size=input.shape, dtype=dtype or input.dtype)


@_creation
def ones_like(input: Any, dtype: Any = None) -> HostTensor:
    """Return ones of another tensor's shape and dtype."""
    return ones(size=input.shape, dtype=dtype or input.dtype)


@_creation
def full_like(input: Any, fill_value: Any, dtype: Any = None) -> HostTensor:
    """Return a value in another tensor's shape and dtype."""
    return full(input.shape, fill_value, dtype or input.dtype)


@_creation
def eye(n: int, m: int | None = None, dtype: Any = None) -> HostTensor:
    """Return ones on the diagonal."""
    return _make_host_tensor(np.eye(n, m), dtype)


@_creation
def arange(*args: Any, start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> HostTensor:
    """Return a range of numbers, of float32 if one of its ends is a float."""
    array = np.arange(*args) if args else np.arange(start, end, step)
    return _make_host_tensor(array, dtype or (np.float32 if array.dtype == np.float64 else array.dtype))


@_creation
def linspace(start: Any, end: Any, steps: int, dtype: Any = None) -> HostTensor:
    """Return evenly spaced numbers, both ends included."""
    return _make_host_tensor(np.linspace(start, end, steps), dtype)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple:
    """Return the coordinates of a grid."""
    return wrap_arrays(tuple(np.meshgrid(*[np.asarray(t) for t in size_of(tensors)], indexing=indexing)))  # type: ignore


# ------------------------------------------------------------------------------------------------------------ random


class Generator:
    """A separate stream of random numbers."""

    def __init__(self, device: Any = "cpu") -> None:
        self._stream = np.random.RandomState()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream anew, and return the generator."""
        self._stream.seed([seed & 0xFFFF_FFFF, seed >> 32 & 0xFFFF_FFFF])
        return self


def manual_seed(seed: int) -> None:
    """Seed the random numbers of this batch."""
    np.random.seed([seed & 0xFFFF_FFFF, seed >> 32 & 0xFFFF_FFFF])


def _stream(generator: Generator | None) -> Any:
    return np.random if generator is None else generator._stream


@_creation
def rand(*args: Any, size: Any = None, generator: Any = None, dtype: Any = None) -> HostTensor:
    """Return uniform numbers in [0, 1)."""
    whole = _stream(generator).randint(0, 1 << 24, _shape(args, size))  # 24 bits: the resolution of float32 below 1
    return _make_host_tensor(np.asarray(whole) * 2.0**-24, dtype)


@_creation
def randn(*args: Any, size: Any = None, generator: Any = None, dtype: Any = None) -> HostTensor:
    """Return numbers of the standard normal distribution."""
    return _make_host_tensor(_stream(generator).standard_normal(_shape(args, size)), dtype)


@_creation
def rand_like(input: Any, dtype: Any = None) -> HostTensor:
    """Return uniform numbers in another tensor's shape and dtype."""
    return rand(size=input.shape, dtype=dtype or input.dtype)


@_creation
def randn_like(input: Any, dtype: Any = None) -> HostTensor:
    """Return normal numbers in another tensor's shape and dtype."""
    return randn(size=input.shape, dtype=dtype or input.dtype)


@_creation
def randint(
    low: Any = 0, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = np.int64
) -> HostTensor:
    """Return integers in [low, high); ``randint(high, size)`` starts at 0."""
    if size is None:
        low, high, size = 0, low, high
    return _make_host_tensor(_stream(generator).randint(low, high, tuple(size)), dtype)


@_creation
def randperm(n: int, *, generator: Any = None, dtype: Any = np.int64) -> HostTensor:
    """Return the integers below n in random order."""
    return _make_host_tensor(_stream(generator).permutation(n), dtype)


@_creation
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None) -> HostTensor:
    """Return normal numbers of these means and deviations."""
    return _make_host_tensor(_stream(generator).normal(mean, std, size), None)


def bernoulli(input: Any, *, generator: Any = None) -> HostTensor:
    """Return 1 with the probabilities given, else 0."""
    return _make_host_tensor(_stream(generator).random_sample(input.shape) < np.asarray(input), input.dtype)


# ------------------------------------------------------------------------------------------------ putting together


def _join_tensors(join: Callable, tensors: Any, dim: int) -> HostTensor:
    arrays = [np.asarray(t) for t in tensors]
    return wrap_arrays(join(arrays, dim).astype(common_dtype(arrays), copy=False))


def stack(tensors: Any, dim: int = 0) -> HostTensor:
    """Return tensors along a new dim."""
    return _join_tensors(np.stack, tensors, dim)


def cat(tensors: Any, dim: int = 0, axis: Any = None) -> HostTensor:
    """Return tensors one after the other."""
    return _join_tensors(np.concatenate, tensors, dim if axis is None else axis)


def split(input: Any, split_size: Any, dim: int = 0) -> tuple:
    """Return the parts of a size, or of sizes, along a dim."""
    n = input.shape[dim]
    ends = range(split_size, n, split_size) if isinstance(split_size, int) else np.cumsum(split_size)[:-1]
    return wrap_arrays(tuple(np.split(np.asarray(input), list(ends), dim)))


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple:
    """Return so many parts along a dim, the last of which may be smaller."""
    return split(input, max(1, -(-input.shape[dim] // chunks)), dim)


def unbind(input: Any, dim: int = 0) -> tuple:
    """Return the slices along a dim."""
    return wrap_arrays(tuple(np.moveaxis(np.asarray(input), dim, 0)))


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> HostTensor:
    """Return some dims as one."""
    shape, last = input.shape, end_dim % max(1, input.ndim)
    return wrap_arrays(np.asarray(input).reshape(*shape[:start_dim], -1, *shape[last + 1 :]))


def flip(input: Any, *args: Any, dims: Any = None) -> HostTensor:
    """Return the values in reverse order along dims."""
    return wrap_arrays(np.flip(np.asarray(input), size_of(args or (dims,))))


def roll(input: Any, shifts: Any, dims: Any = None) -> HostTensor:
    """Return the values moved on along dims, round the end."""
    return wrap_arrays(np.roll(np.asarray(input), shifts, dims))


def repeat_interleave(input: Any, repeats: Any, dim: Any = None) -> HostTensor:
    """Return each value so many times in a row."""
    return wrap_arrays(np.repeat(np.asarray(input), np.asarray(repeats), dim))


def gather(input: Any, dim: int, index: Any) -> HostTensor:
    """Return the values at the places that ``index`` names along a dim."""
    array, places = np.asarray(input), np.asarray(index)
    part = array[tuple(slice(None) if d == dim % array.ndim else slice(n) for d, n in enumerate(places.shape))]
    return wrap_arrays(np.take_along_axis(part, places, dim))


def masked_fill(input: Any, mask: Any, value: Any) -> HostTensor:
    """Return the tensor with a value where the mask holds."""
    return wrap_arrays(np.where(np.asarray(mask), np.asarray(value, input.dtype), np.asarray(input)))


def tril(input: Any, diagonal: int = 0) -> HostTensor:
    """Return the values on and below a diagonal, 0 elsewhere."""
    return wrap_arrays(np.tril(np.asarray(input), diagonal))


def triu(input: Any, diagonal: int = 0) -> HostTensor:
    """Return the values on and above a diagonal, 0 elsewhere."""
    return wrap_arrays(np.triu(np.asarray(input), diagonal))


def einsum(equation: str, *operands: Any) -> HostTensor:
    """Return the sum of products that the equation names."""
    return wrap_arrays(np.einsum(equation, *[np.asarray(x) for x in size_of(operands)]))


# ---------------------------------------------------------------------------------------------- numbers of numbers


def _make_elementwise(function: Callable) -> Callable:
    """Return NumPy's function of the same name, on tensors."""

    def call(input: Any, *others: Any) -> Any:
        return wrap_arrays(function(as_tensor(input), *others))

    return call


def _scale_second(function: Callable) -> Callable:
    """Return NumPy's sum or difference, of a multiple of the second tensor."""

    def call(input: Any, other: Any, *, alpha: Any = 1) -> Any:
        return function(as_tensor(input), other if alpha == 1 else as_tensor(other) * alpha)

    return call


def clamp(input: Any, min: Any = None, max: Any = None) -> HostTensor:
    """Return the values, none below min or above max."""
    made = as_tensor(input)
    made = made if min is None else np.maximum(made, min)
    return made if max is None else np.minimum(made, max)


def sigmoid(input: Any) -> HostTensor:
    """Return ``1 / (1 + exp(-x))``."""
    return 1 / (1 + np.exp(-as_tensor(input)))


def relu(input: Any) -> HostTensor:
    """Return the values, 0 in the place of negative ones."""
    return wrap_arrays(np.maximum(np.asarray(input), np.asarray(0, input.dtype)))


def softmax(input: Any, dim: int = -1, dtype: Any = None) -> HostTensor:
    """Return ``exp(x)`` over its sum along a dim."""
    array = np.asarray(input if dtype is None else input.type(dtype))
    whole = np.exp(array - np.max(array, dim, keepdims=True))
    return wrap_arrays(whole / np.sum(whole, dim, keepdims=True))


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Return elements of one tensor where the condition holds, else of the other; alone, the indices where it holds."""
    if input is None:
        return wrap_arrays(np.nonzero(np.asarray(condition)))
    chosen = np.where(np.asarray(condition), np.asarray(tensor(input)), np.asarray(tensor(other)))
    return wrap_arrays(chosen)


def _make_reduction(name: str, **fixed: Any) -> Callable:
    """Return NumPy's reduction of a name, with the argument names of tensors."""

    def call(input: Any, dim: Any = None, *args: Any, keepdim: bool = False, **options: Any) -> Any:
        given = dict(fixed)
        if "ddof" in fixed:
            if isinstance(dim, bool):  # var(unbiased)
                dim, options["unbiased"] = None, dim
            if args:  # var(dim, unbiased, keepdim)
                options["unbiased"], args = args[0], args[1:]
            given["ddof"] = int(options.pop("unbiased", options.pop("correction", 1)))
        if args:
            (keepdim,) = args
        dim, keepdim = options.pop("axis", dim), options.pop("keepdims", keepdim)
        options.pop("where", None)  # of NumPy's own calls
        dtype = options.pop("dtype", None)
        array = np.asarray(input if dtype is None else input.type(dtype))
        axis = dim if dim is None or isinstance(dim, int) else tuple(dim)
        return wrap_arrays(getattr(array, name)(axis=axis, keepdims=keepdim, **given, **options))

    return call


_results = {name: namedtuple(name, ["values", "indices"]) for name in ("max", "min", "sort", "topk")}


def _make_min_max(pick: str, where: str) -> Callable:
    """Return `max` or `min`: of all, of two tensors, or along a dim with the places."""

    def call(input: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
        array = np.asarray(input)
        dim = options.get("other", options.get("axis", dim))
        if dim is None:
            return wrap_arrays(getattr(array, pick)())
        if not isinstance(dim, int):
            return wrap_arrays(getattr(np, f"{pick}imum")(array, np.asarray(dim)))
        places = np.expand_dims(getattr(array, where)(dim), dim)
        values = np.take_along_axis(array, places, dim)
        found = (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))
        return wrap_arrays(_results[pick](*found))

    return call


def sort(input: Any, dim: int = -1, descending: bool = False) -> Any:
    """Return the values in order along a dim, and where they were; equal ones stay in order."""
    array = np.asarray(input)
    order = np.argsort(-array if descending else array, dim, kind="stable")
    return wrap_arrays(_results["sort"](np.take_along_axis(array, order, dim), order))


def argsort(input: Any, dim: int = -1, descending: bool = False) -> HostTensor:
    """Return where the values in order were."""
    return sort(input, dim, descending)[1]


def topk(input: Any, k: int, dim: int = -1, largest: bool = True) -> Any:
    """Return the k largest (or smallest) values along a dim, in order, and where they were."""
    found = sort(input, dim, largest)
    first = tuple(slice(k) if d == dim % input.ndim else slice(None) for d in range(input.ndim))
    return _results["topk"](*[part[first] for part in found])


def nonzero(input: Any, as_tuple: bool = False) -> Any:
    """Return the places of values that are not 0: a row each, or a tensor for each dim."""
    return wrap_arrays(np.nonzero(np.asarray(input)) if as_tuple else np.argwhere(np.asarray(input)))


def unique(input: Any) -> HostTensor:
    """Return the values that occur, in order."""
    return wrap_arrays(np.unique(np.asarray(input)))


def cumsum(input: Any, dim: Any = None, **options: Any) -> HostTensor:
    """Return the sums up to each place along a dim."""
    return wrap_arrays(np.cumsum(np.asarray(input), options.get("axis", dim)))


def norm(input: Any, p: Any = 2, dim: Any = None, keepdim: bool = False) -> HostTensor:
    """Return the p-norm of all values, or along a dim."""
    array = np.asarray(input)
    found = np.linalg.norm(array.ravel() if dim is None else array, 2 if p == "fro" else p, dim, keepdim)
    return wrap_arrays(np.asarray(found, array.dtype))


# --------------------------------------------------------------------------------------------------- nn.functional


def one_hot(input: Any, num_classes: int = -1) -> HostTensor:
    """Return 1 at the place that each integer names, in a new last dim."""
    count = int(np.max(np.asarray(input))) + 1 if num_classes == -1 else num_classes
    return wrap_arrays(np.eye(count, dtype=np.int64)[np.asarray(input)])


def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> HostTensor:
    """Return a tensor padded (or cropped) before and after; two numbers for each dim, the last dim first."""
    widths = [(0, 0)] * (input.ndim - len(pad) // 2)
    widths += [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    cut = tuple(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(input.shape, widths, strict=True))
    array, widths = np.asarray(input)[cut], [(max(0, a), max(0, b)) for a, b in widths]
    names: Any = {"replicate": "edge", "circular": "wrap", "reflect": "reflect"}
    if mode == "constant":
        return wrap_arrays(np.pad(array, widths, constant_values=0 if value is None else value))
    return wrap_arrays(np.pad(array, widths, names[mode]))


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> HostTensor:
    """Return a tensor normalized to p-norm 1 along a dim."""
    return input / np.maximum(norm(input, p, dim, True), eps)


def is_tensor(value: Any) -> bool:
    """Return whether a value arrives as a tensor."""
    return isinstance(value, HostTensor)


class no_grad(contextlib.ContextDecorator):
    """A block or decorator that changes nothing: there is no tape here."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: Any) -> None: ...


# -------------------------------------------------------------------------------------------------------- the table


def _in_place(function: Callable) -> Callable:
    """Return the form of a function that writes its result into its first argument."""

    def call(input: Any, *args: Any, **options: Any) -> Any:
        return input.copy_(function(input, *args, **options))

    return call


def _make_creation_method(function: Callable) -> Callable:
    """Return a creation function as a method, of the tensor's dtype."""

    def call(input: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
        return function(*args, dtype=dtype or input.dtype, **options)

    return call


_NUMPY = "abs exp log log1p log2 log10 sqrt square sin cos tan tanh sinh cosh floor ceil round trunc sign isnan isinf"
_NUMPY += " isfinite maximum minimum matmul logical_and logical_or logical_not logical_xor"
_RENAMED = {
    **{"mul": "multiply", "div": "true_divide", "pow": "power", "neg": "negative"},
    **{"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"},
    **{"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "mm": "matmul", "bmm": "matmul"},
    **{"fmod": "fmod", "remainder": "remainder", "dot": "dot", "reciprocal": "reciprocal"},
}
_BY_ELEMENT = {name: _make_elementwise(getattr(np, name)) for name in _NUMPY.split()}
_BY_ELEMENT |= {name: _make_elementwise(getattr(np, theirs)) for name, theirs in _RENAMED.items()}
_BY_ELEMENT |= {"add": _scale_second(np.add), "sub": _scale_second(np.subtract)}
_REDUCTIONS: dict[str, Callable] = {
    **{name: _make_reduction(name) for name in ("sum", "mean", "prod", "argmax", "argmin", "any", "all")},
    **{"std": _make_reduction("std", ddof=1), "var": _make_reduction("var", ddof=1)},
    **{"max": _make_min_max("max", "argmax"), "min": _make_min_max("min", "argmin")},
}
_OF_TENSORS = (split, chunk, unbind, flatten, flip, roll, clamp, sigmoid, relu, softmax, sort, argsort, topk, nonzero)
_OF_TENSORS += (unique, cumsum, norm, repeat_interleave, gather, masked_fill, tril, triu)
_WRITING = "add sub mul div pow abs neg exp sqrt clamp round floor ceil masked_fill".split()
_PLAIN = _BY_ELEMENT | _REDUCTIONS | {f.__name__: f for f in _OF_TENSORS}
METHODS: dict[str, Callable] = {
    **_PLAIN,
    **{f"{name}_": _in_place(_PLAIN[name]) for name in _WRITING},
    **{f"new_{f.__name__}": _make_creation_method(f) for f in (zeros, ones, full, tensor)},
    "clip": clamp,
}

_MADE = (tensor, from_numpy, as_tensor, zeros, ones, full, zeros_like, ones_like, full_like, eye, arange, linspace)
_RANDOM = (Generator, manual_seed, rand, randn, rand_like, randn_like, randint, randperm, normal, bernoulli)
_SHAPES = ("reshape", "squeeze", "unsqueeze", "permute", "transpose", "t", "numel", "clone")
FUNCTIONS: dict[str, Any] = {
    **{f.__name__: f for f in (*_MADE, *_RANDOM, meshgrid, stack, cat, einsum, where, is_tensor, no_grad)},
    **{"empty": zeros, "empty_like": zeros_like, "concat": cat, "clip": clamp},
    **_PLAIN,
    **{name: getattr(HostTensor, name) for name in _SHAPES},
    **{f"nn.functional.{f.__name__}": f for f in (one_hot, pad, normalize, relu, softmax, sigmoid)},
}

for _name, _function in METHODS.items():
    setattr(HostTensor, _name, _function)
