"""Error translation: errors of ops in four parts, with the exception type that PyTorch raises."""

from __future__ import annotations

import re
from typing import Any

import jax

from sbpjax import errors
from sbpjax._core.jax_private import FOUND_NAN, is_leaked
from sbpjax._core.naming import package
from sbpjax._core.ops import dims
from sbpjax._core.runtime import sizes
from sbpjax.sbp.algebra import FREE

from ..handle.tensor import TRACED, Tensor


def describe(x) -> str:
    """Return the description of one input in an error: kind, dtype, shape and layout."""
    if not isinstance(x, Tensor):
        return repr(x) if not hasattr(x, "shape") else f"{type(x).__name__} {tuple(x.shape)}"
    if jax.dtypes.issubdtype(x._array.dtype, jax.dtypes.prng_key):
        return "a random key"
    text = f"{x.dtype.name}{list(x.shape)}"
    if x.is_meta:
        text = f"abstract {text}"
    if x._layout is not None:
        return f"{text} {x._layout}"
    return text


def check_leaked(*tensors: Tensor) -> None:
    """Raise for a tensor that outlived the trace it is of: everything that reads a payload by itself begins so."""
    for x in tensors:
        if x._kind == TRACED and is_leaked(x._array):
            raise leaked_error(x)


def leaked_error(x: Tensor) -> Exception:
    """Return the error for a tensor that outlived the trace it is of."""
    return errors.OpError(
        "a tensor of a trace that is over",
        f"{x.dtype.name}{list(x.shape)}",
        "functions under jax.jit, grad, vmap, scan and the like return arrays; a tensor in them is a tracer, which "
        "ends with the trace",
        "return x.jax() instead of the tensor x; keep no tensor of the trace in an attribute, a list or a global name",
    )


_SHAPES = ("shape", "broadcast", "dimension", "size", "rank")


def _is_shape_error(error: BaseException) -> bool:
    """Return whether an error of JAX is about shapes: a TypeError there, a RuntimeError in PyTorch."""
    text = str(error)
    return any(word in text for word in _SHAPES)


def _device_mismatch_error(op, inputs) -> Exception:
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    return errors.MixedTensorError(
        op.name,
        "; ".join(f"input {i}: {describe(x)} on {x.device}" for i, x in enumerate(tensors)),
        "all inputs of a local op are on one device",
        f"x.to({str(tensors[0].device)!r}) for the others",
    )


def _mesh_mismatch_error(op, inputs) -> Exception | None:
    """Return the error for tracers of another mesh than that of `jax.set_mesh`; None where there is one mesh."""
    ambient = jax.sharding.get_abstract_mesh()
    typed = [x._array for x in inputs if isinstance(x, Tensor) and isinstance(x._array, jax.core.Tracer)]
    others = [m for x in typed if (m := jax.typeof(x).sharding.mesh).shape_tuple not in ((), ambient.shape_tuple)]
    if ambient.empty or not others:
        return None
    return errors.MixedTensorError(
        f"{op.name} inside a program of JAX",
        f"{', '.join(map(describe, inputs))} of mesh {others[0].shape}, under jax.set_mesh of {ambient.shape}",
        "a program has one mesh: that of jax.set_mesh is also that of its arrays",
        "with jax.set_mesh(array.sharding.mesh): around the call, or jax.device_put of the array to the other mesh",
    )


def _lacks_data(inputs) -> bool:
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    return any(x.is_meta and x._layout is None for x in tensors) and not all(x.is_meta for x in tensors)


def _missing_data_error(op, inputs) -> Exception:
    return errors.AbstractError(
        op.name,
        ", ".join(describe(x) for x in inputs),
        "a local tensor without data cannot be a constant of a program, nor meet local tensors with data",
        "give it to the program as an argument or as state, or make it outside sbpjax.abstract()",
    )


def public_call_error(error: Exception, name: str, args: tuple, options: dict) -> Exception:
    """Return the error to raise for a public function that failed on arguments before an op ran."""
    arguments = ", ".join([*map(describe_value, args), *(f"{k}={describe_value(v)}" for k, v in options.items())])
    full = sizes.out_of_memory(f"{name}(...)", arguments or "no arguments", error)
    if full is not None or type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError"):
        return full or error
    return _error_class(error)(f"{name}(...)", arguments or "no arguments", _line_of(error), _FIX)


def describe_value(value: Any) -> str:
    """Return the description of one argument of a function in an error."""
    return describe(value) if hasattr(value, "dtype") else repr(value)[:60]


def _error_class(error: Exception) -> type[errors.SbpjaxError]:
    """Return the error class for a Python, NumPy or JAX error; text parsed as a number is a wrong type."""
    if isinstance(error, IndexError):
        return errors.OpIndexError
    if isinstance(error, (AttributeError, KeyError)):
        return errors.OpTypeError
    # Before TypeError: JAX raises that for shapes which do not fit, and PyTorch's users catch RuntimeError.
    if _is_shape_error(error):
        return errors.OpError
    if isinstance(error, TypeError) or str(error).startswith(("invalid literal", "could not convert")):
        return errors.OpTypeError
    return errors.OpValueError if isinstance(error, ValueError) else errors.OpError


def _line_of(error: Exception) -> str:
    if _NO_BROADCAST.search(str(error)):  # JAX has many messages for it
        found = [tuple(map(int, re.findall(r"\d+", text))) for text in _SHAPE.findall(str(error))]
        rule = dims.broadcast_rule(found) if len(found) > 1 else None
        if rule is not None:
            return rule
    return str(error).strip().split("\n\n")[0].split("\n")[0] or type(error).__name__


_NO_BROADCAST = re.compile(r"ncompatible (shapes|types) for broadcasting|cannot be broadcast")
_SHAPE = re.compile(r"[(\[]((?:\d+(?:, ?)?)+)[)\]]")
_FIX = "make the inputs fit the rule, e.g. with reshape, to(dtype) or another dim"


def translate(error: Exception, op, inputs) -> Exception:
    """Return the error to raise for an op that failed on these inputs."""
    if not isinstance(error, errors.SbpjaxError) and _lacks_data(inputs):
        return _missing_data_error(op, inputs)
    if isinstance(error, FOUND_NAN):
        error = FloatingPointError(f"invalid value ({getattr(error, 'ty', 'nan')}) encountered in {op.name}")
    if isinstance(error, FloatingPointError) and not isinstance(error, errors.SbpjaxError):
        rule = f"under jax.debug_nans a program ends at the first op that makes one: {_line_of(error)}"
        fix = "look at the values of its inputs, with print or x.min()"
        return errors.NanError(op.name, ", ".join(map(describe, inputs)), rule, fix)
    full = sizes.out_of_memory(op.name, ", ".join(map(describe, inputs)) or "no inputs", error)
    if full is not None:
        return full
    if isinstance(error, errors.SbpjaxError) or not isinstance(
        error, (TypeError, ValueError, IndexError, RuntimeError)
    ):
        return error
    if type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError"):
        return error
    # By its message: JAX has no class for it (jax 0.10).
    if "incompatible devices" in str(error):
        return _device_mismatch_error(op, inputs)
    if (mismatch := _mesh_mismatch_error(op, inputs)) is not None:
        return mismatch
    kind, text = _error_class(error), _line_of(error)
    arguments = ", ".join([*(describe(x) for x in inputs), *(f"{k}={v!r}" for k, v in op.static)])
    return kind(f"{op.name}({', '.join(f'{k}={v!r}' for k, v in op.static)})", arguments or "no inputs", text, _FIX)


def mixed_error(operation: str, inputs) -> errors.MixedTensorError:
    """Return the error for inputs on different placements, or of which some are local and some global."""
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    seen = []
    for i, x in enumerate(tensors):
        kind = "local" if x._layout is None else "global"
        label = "a parameter, " if _is_parameter(x) else ""
        where = x.device if x._layout is None else repr(x.placement)
        seen.append(f"input {i}: {label}{kind} {tuple(x.shape)} on {where}")
    rule = "all inputs of one op are local, or on one placement (hierarchy included)"
    return errors.MixedTensorError(operation, "; ".join(seen), rule, _suggest_placement_fix(tensors))


def _is_parameter(x) -> bool:
    return any(kind.__name__ == "Parameter" for kind in type(x).__mro__)  # a class of a package above this one


def _suggest_placement_fix(tensors: list) -> str:
    """Return the line of code that brings the inputs of an op together."""
    placed = [x for x in tensors if x._layout is not None]
    if not placed:
        return "move the inputs to one device with x.to(device)"
    # Data move to the parameters, or to an activation that came from them.
    target = max(placed, key=lambda x: (_is_parameter(x), x.requires_grad))
    local = [x for x in tensors if x._layout is None]
    count = len(target.placement.hierarchy)
    if any(map(_is_parameter, local)):
        alike = ", ".join(["sbpjax.sbp.broadcast"] * count)
        return f"model.to_global({target.placement!r}, [{alike}])  # the parameters are local, the data global"
    if not local:
        number, moving = next((i, x) for i, x in enumerate(placed) if x.placement != target.placement)
        sbp = moving.sbp if len(moving.sbp) == count else target.sbp
        if any(one.code == FREE for one in sbp):
            return f"x.to_global(placement={target.placement!r})  # for input {number}"
        return f"x.to_global({target.placement!r}, {list(sbp)!r})  # for input {number}"
    return _suggest_local_fix(target, count)


def _suggest_local_fix(target, count: int) -> str:
    where, alike = repr(target.placement), ", ".join(["sbpjax.sbp.broadcast"] * count)
    if not target.placement.spans_processes:
        hint = f"for each local input; {package()}.tensor(x) first for a NumPy array; split(0) for a batch"
        return f"x.to_global({where}, [{alike}])  # {hint}"
    own = ", ".join(["sbpjax.sbp.split(0)", *["sbpjax.sbp.broadcast"] * (count - 1)])
    return (
        f"x.to_global({where}, [{own}]) where each process has its own rows (a batch), "
        f"x.to_global({where}, [{alike}]) where all have the same values"
    )
