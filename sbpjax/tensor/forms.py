"""Methods of `Tensor` in the form of functions: ``sbpjax.sin_(x)`` is ``x.sin_()``; and OneFlow's own call forms."""

from __future__ import annotations

from sbpjax.errors import OpError, OpTypeError, message

from . import dispatch
from .binding import publish
from .convert import host
from .functions import trunc as fix  # noqa: F401
from .indexing import _with
from .oneflow_arguments import take_oneflow
from .op import op_of
from .tensor import Tensor

METHODS = """abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_
 atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ detach detach_ erf_ erfc_ erfinv_
 exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put index_put_ lcm_ ldexp_ lerp_ log10_
 log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ new_empty new_full new_ones new_tensor new_zeros
 rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_
 trunc_ xlogy_ zero_ is_signed is_same_size is_inference is_distributed adjoint unsafe_chunk unsafe_split
 gt_ index_add_ masked_fill_ normal_ to_local contiguous sub_ add_ mul_ div_""".split()


def _function(name: str):
    def function(input, *args, **options):
        return getattr(input, name)(*args, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return `Tensor.{name}` of a tensor."
    return function


for _name in METHODS:
    globals()[_name] = _function(_name)
publish(globals(), " ".join(METHODS), out=False)


_VIEWS = """alias as_strided detach diagonal expand permute select slice split split_with_sizes squeeze t transpose
 unbind unfold unsqueeze view view_as_complex view_as_real""".split()


def _copied(name: str):
    def function(input, *args, out=None, **options):
        from . import complex as complexes
        from .binding import into_out

        if name == "alias":
            viewed = _alone(input, *args, **options)
        elif name == "slice":
            viewed = slice_(input, *args, **options)
        elif hasattr(Tensor, name):
            viewed = getattr(input, name)(*args, **options)
        else:
            viewed = getattr(complexes, name)(input, *args, **options)
        copied = tuple(v.clone() for v in viewed) if isinstance(viewed, tuple) else viewed.clone()
        return copied if out is None else into_out(out, copied)

    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.__doc__ = f"Return a copy of what `{name}` shows."
    return function


def _alone(input):
    return input


for _name in _VIEWS:
    if _name not in ("slice", "as_strided"):
        globals()[f"{_name}_copy"] = _copied(_name)
publish(globals(), " ".join(f"{_name}_copy" for _name in _VIEWS if _name not in ("slice", "as_strided")))


# ------------------------------------------------------------------------------------------------------------- OneFlow


def _slices(input: Tensor, several, asked: str) -> tuple:
    if not isinstance(several, (list, tuple)) or len(several) > input.ndim:
        rule = f"one (start, stop, step) for each of up to {input.ndim} dims"
        raise OpTypeError(message(asked, repr(several)[:60], rule, "[[None, None, None], [0, 2, 1]]"))
    return tuple(slice(*each) for each in several)


def slice_(input: Tensor, slice_tup_list) -> Tensor:
    """Return the part that one ``(start, stop, step)`` per dim names; None is the default of each."""
    return input[_slices(input, slice_tup_list, "slice(x, ...)")]


def slice_update(input: Tensor, update: Tensor, slice_tup_list) -> Tensor:
    """Write a tensor into the part that one ``(start, stop, step)`` per dim names, and return the whole."""
    input[_slices(input, slice_tup_list, "slice_update(x, ...)")] = update
    return input


def in_top_k(targets: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Return for each row of ``(N, C)`` predictions whether its target class is among the ``k`` largest."""
    from sbpjax import _C

    return _C.in_top_k(targets, predictions, k)


def square_relu(input: Tensor) -> Tensor:
    """Return the square of relu."""
    return dispatch.run(op_of(_square_relu), (input,))


def _square_relu(x, /):
    from jax import lax

    from sbpjax.ops.activation import relu

    return lax.square(relu(x))


def distributed_partial_fc_sample(weight: Tensor, label: Tensor, num_sample: int) -> tuple:
    """Return labels among sampled classes, the classes, and their rows of a weight.

    All classes that occur in ``label`` are taken, and others at random until there are ``num_sample``; the classes come
    sorted, and each label becomes its place among them.

    Args:
        weight: ``(C, D)``, a row per class.
        label: ``(N,)`` class numbers.
        num_sample: how many classes.
    """
    import numpy as np

    from .random import randperm

    labels = host(label)
    positive = np.unique(labels)
    if len(positive) > num_sample or num_sample > weight.shape[0]:
        rule = (
            f"num_sample lies between the {len(positive)} classes that occur and the {weight.shape[0]} that there are"
        )
        raise OpError(
            message(f"distributed_partial_fc_sample(num_sample={num_sample})", "labels", rule, "num_sample=...")
        )
    order = host(randperm(weight.shape[0]))
    others = order[~np.isin(order, positive)][: num_sample - len(positive)]
    sampled = np.sort(np.concatenate([positive, others])).astype(labels.dtype)
    mapped = np.searchsorted(sampled, labels).astype(labels.dtype)
    classes = _with(sampled, label)
    return _with(mapped, label), classes, weight.index_select(0, classes)


def asarray(obj, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool | None = None) -> Tensor:
    """Return a tensor with the content given; a tensor itself, unless ``copy`` or another dtype is asked for.

    By default the result of a tensor is on the tape as that is; with ``requires_grad=False`` it is detached.
    """
    from .from_data import as_tensor, tensor

    if isinstance(obj, Tensor):
        found = obj.detach() if copy or requires_grad is False and obj.requires_grad else obj
        found = as_tensor(found.clone() if copy else found, dtype=dtype, device=device)
    else:
        found = tensor(obj, dtype=dtype, device=device) if copy else as_tensor(obj, dtype=dtype, device=device)
    return found.requires_grad_() if requires_grad else found


def scalar_tensor(s: float | complex | Tensor, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """Return a 0-d tensor, of the default dtype unless told otherwise."""
    from .dtype import get_default_dtype
    from .from_data import tensor

    return tensor(s, dtype=get_default_dtype() if dtype is None else dtype, device=device, requires_grad=requires_grad)


def range_(start=0, end=None, step=1, *, dtype=None, device=None, requires_grad: bool = False, out=None) -> Tensor:
    """Return ``start``, ``start + step``, … up to and including ``end``."""
    from .binding import into_out
    from .creation import arange
    from .dtype import get_default_dtype

    start, end = (0, start) if end is None else (start, end)
    dtype = get_default_dtype() if dtype is None else dtype
    count = int((end - start) / step) + 1
    found = (arange(count, dtype=dtype, device=device) * step + start).to(dtype)
    found = found.requires_grad_() if requires_grad else found
    return found if out is None else into_out(out, found)


def frombuffer(buffer, *, dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Return the bytes of a buffer as a vector, copied."""
    import numpy as np

    from .dtype import of
    from .from_data import tensor

    values = np.frombuffer(buffer, dtype=of(dtype).np, count=count, offset=offset)
    return tensor(values.copy(), requires_grad=requires_grad)


def get_device(input: Tensor) -> int:
    """Return the index of the device; -1 on the CPU."""
    return input.get_device()


def is_storage(obj) -> bool:
    """Return whether an object is the memory of a tensor."""
    from .strided import Storage

    return isinstance(obj, Storage)


take_oneflow(globals())
