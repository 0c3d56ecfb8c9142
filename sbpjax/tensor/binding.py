"""From an op's signature to a public function: ``softmax(x, /, dim, dtype=None)`` becomes ``softmax(input, dim, dtype=None)``.

Positional-only parameters of an op are its tensors, the rest are static attributes. `bind` writes the Python function that a person
would write, so that calling it costs no packing of arguments, and its signature reads as PyTorch's.
"""

from __future__ import annotations

import inspect
import os

import numpy as np

from . import dispatch
from . import dtype as dtypes
from .inplace import inplace
from .op import op_of
from .tensor import Tensor

_FIRST = ("input", "other")


def hashable(value):
    """Return a static attribute as a hashable value: lists become tuples, 0-d tensors numbers, dtypes NumPy dtypes."""
    if value.__class__ is int or value.__class__ is float or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return tuple([hashable(v) for v in value])
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, dtypes.dtype):
        return value.np
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tuple(hashable(v) for v in value.tolist())
    return value


def into_out(out, result):
    """Write the result of a function into its ``out=`` argument and return that."""
    if isinstance(result, tuple):
        for target, value in zip(out, result, strict=True):
            into_out(target, value)
        return out
    from .inplace import assign_out

    return assign_out(out, result)


def _file(name: str) -> str:
    """Return a file name for written code that error messages count as part of the library."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), f"<{name}>")


def bind(fn, names: tuple[str, ...] = _FIRST, name: str | None = None, defaults: dict | None = None):
    """Return the public function of an op.

    Args:
        fn: a function of `sbpjax.ops`.
        names: what the tensor parameters are called, first to last; those beyond keep the op's own names.
        name: what the function is called, if not as the op.
        defaults: other defaults than the op's.
    """
    own = inspect.signature(fn).parameters
    name = name or fn.__name__
    tensors, statics, head, calls = [], [], [], []
    for i, (key, parameter) in enumerate(own.items()):
        default = (defaults or {}).get(key, parameter.default)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            public = names[i] if i < len(names) else key
            tensors.append(public)
        else:
            public = key
            statics.append(public)
        head.append(public if default is parameter.empty else f"{public}={default!r}")
    for key in statics:
        value = f"np_of({key})" if key == "dtype" else f"hashable({key})"
        calls.append(f"({key!r}, {value})")
    space = {"op_of": op_of, "fn": fn, "into_out": into_out, "hashable": hashable, "np_of": dtypes.np_of, "run": dispatch.run}
    if not statics and len(tensors) == 1:
        space["op"], space["unary"] = op_of(fn), dispatch.unary
        run = f"unary(op, {tensors[0]}) if {tensors[0]}.__class__ is Tensor else run(op, ({tensors[0]},))"
    elif not statics and len(tensors) == 2:
        space["op"], space["binary"] = op_of(fn), dispatch.binary
        a, b = tensors
        run = f"binary(op, {a}, {b}) if {a}.__class__ is Tensor else run(op, ({a}, {b}))"
    elif not statics:
        space["op"] = op_of(fn)
        run = f"run(op, ({', '.join(tensors)},))"
    else:
        run = f"run(op_of(fn, ({', '.join(calls)},)), ({', '.join(tensors)},))"
    space["Tensor"] = Tensor
    source = f"def {name}({', '.join(head)}, *, out=None):\n    result = {run}\n    return result if out is None else into_out(out, result)\n"
    exec(compile(source, _file(name), "exec"), space)
    public = space[name]
    public.__doc__ = fn.__doc__
    public.__module__ = "sbpjax"
    return public


def inplace_of(fn, name: str):
    """Return the in-place method of an op: ``x.add_(y)`` of ``add``."""
    own = inspect.signature(fn).parameters
    tensors = [k for k, p in own.items() if p.kind is p.POSITIONAL_ONLY]
    statics = [k for k, p in own.items() if p.kind is not p.POSITIONAL_ONLY]
    names = ["self", *["other" if i == 0 else k for i, k in enumerate(tensors[1:])]] if len(tensors) == 2 else ["self", *tensors[1:]]
    head = []
    for public, key in zip([*names, *statics], [*tensors, *statics], strict=True):
        default = own[key].default
        head.append(public if default is inspect.Parameter.empty else f"{public}={default!r}")
    calls = [f"({k!r}, {f'np_of({k})' if k == 'dtype' else f'hashable({k})'})" for k in statics]
    space = {"inplace": inplace, "op_of": op_of, "fn": fn, "hashable": hashable, "np_of": dtypes.np_of}
    others = f"({', '.join(names[1:])},)" if names[1:] else "()"
    if statics:
        operation = f"op_of(fn, ({', '.join(calls)},))"
    else:
        space["op"], operation = op_of(fn), "op"
    source = f"def {name}({', '.join(head)}):\n    return inplace(self, {operation}, {others})\n"
    exec(compile(source, _file(name), "exec"), space)
    method = space[name]
    method.__doc__ = f"Write the result of `{fn.__name__}` into this tensor and return it."
    return method
