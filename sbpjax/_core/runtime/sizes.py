"""Size checks: raise for arrays larger than any machine's memory where shapes are made.

XLA counts the bytes of every array of a program in 64 bits, and ends the process where they do not fit:

    zeros(2**62)                       2^64 bytes: no array has so many
    one_hot(x, 2**62).sum()            an array within a program
    ones(2**45)                        2^47 bytes: more than the machine has

`check_bytes` looks at one shape, `check_equations` at all that a program makes, and `check_memory` at the results of a
program on CPUs. An op's program is checked when it is traced, once per shape; a new tensor each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import jax

from sbpjax._core.jax_private import trace_ctx
from sbpjax.errors import OutOfMemoryError

from . import host_limits

MOST_BYTES = (1 << 63) - 1
# Below, an array is made without reading the system's free memory, which takes 0.1 ms.
_LARGE = 1 << 30
_WIDEST = 16  # bytes of a complex128
_EMPTY_ROWS = 1 << 26
_PARAMETER = 4 << 10  # bytes of Python's and JAX's objects of one parameter, at the least


def bytes_of(shape: Iterable[int], dtype: Any) -> int:
    """Return the bytes of an array; an empty dim counts as one, as in the strides that are counted too."""
    return math.prod([n or 1 for n in shape]) * getattr(dtype, "itemsize", _WIDEST)


def check_bytes(operation: str, shape: Iterable[int], dtype: Any) -> None:
    """Raise unless the bytes of an array can be counted.

    ``shape``: the shape; a dim of a program with a free batch may be a symbol.
    """
    shape = tuple(shape)
    if all(isinstance(n, int) for n in shape) and bytes_of(shape, dtype) > MOST_BYTES:
        raise OutOfMemoryError(
            operation,
            f"{dtype}{list(shape)}, {bytes_of(shape, dtype):.1e} bytes",
            f"an array has less than 2^63 bytes ({MOST_BYTES:.1e})",
            "use smaller sizes",
        )


def check_equations(operation: str, equations: Iterable) -> None:
    """Raise unless the bytes of every array that equations make, or their bodies, can be counted."""
    _check(operation, equations, set())


def _check(operation: str, equations: Iterable, seen: set[int]) -> None:
    for equation in equations:
        for v in equation.outvars:
            shape = getattr(v.aval, "shape", ())
            try:
                large = math.prod(shape) > MOST_BYTES // _WIDEST or 0 in shape
            except Exception:  # a symbol, which cannot be compared
                continue
            if large:
                check_bytes(operation, shape, v.aval.dtype)
                _check_empty_rows(operation, shape, v.aval.dtype)
        for value in equation.params.values():
            for body in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(body, "jaxpr", body)
                if hasattr(inner, "eqns") and id(inner) not in seen:
                    seen.add(id(inner))
                    _check(operation, inner.eqns, seen)


def _check_empty_rows(operation: str, shape: tuple, dtype: Any) -> None:
    """Raise if XLA (of jax 0.10) would take gigabytes and minutes to write down an empty constant, row by row."""
    rows = math.prod(shape[: shape.index(0)]) if 0 in shape else 0
    if rows > _EMPTY_ROWS:
        rule = f"an empty array of a program has at most {_EMPTY_ROWS} rows"
        raise OutOfMemoryError(operation, f"{dtype}{list(shape)}, {rows} rows", rule, "use smaller sizes")


def check_trace(operation: str, results: Any) -> None:
    """Raise unless a trace with its results fits: every array, and the results into memory."""
    frame = getattr(trace_ctx.trace, "frame", None)
    if frame is not None:
        check_equations(operation, frame.get_eqns())
    if jax.default_backend() == "cpu":
        check_memory(operation, [(x.shape, x.dtype) for x in jax.tree.leaves(results) if hasattr(x, "shape")])


def check_memory(operation: str, kinds: Iterable[tuple[Any, Any]], copies: int = 1) -> None:
    """Raise unless this process can take memory for new arrays on CPUs."""
    kinds = [(tuple(shape), dtype) for shape, dtype in kinds]
    if not all(isinstance(n, int) for shape, _ in kinds for n in shape):
        return
    wanted = copies * sum(bytes_of(*kind) for kind in kinds if 0 not in kind[0])
    shown = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in kinds) + (f" on {copies} ranks" * (copies > 1))
    fix = "use smaller sizes or a narrower dtype; device='meta' gives shapes without data"
    _check_free(operation, shown, wanted, fix)


def _check_free(operation: str, seen: str, wanted: int, fix: str) -> None:
    if wanted < _LARGE:
        return
    free = host_limits.free_bytes()
    if free is not None and wanted > free:
        rule = f"this process can take {_units(free)} more of the machine's memory"
        raise OutOfMemoryError(operation, f"{seen}: {_units(wanted)}", rule, fix)


def check_layers(operation: str, count: int, parameters: int) -> None:
    """Raise unless this process can take memory for the objects of many layers; their making takes for ever otherwise.

    Args:
        operation: the call.
        count: how many layers.
        parameters: of each layer.

    Raises:
        OutOfMemoryError: it cannot.
    """
    seen = f"{count} layers of {parameters} parameters"
    _check_free(operation, seen, count * parameters * _PARAMETER, "make fewer layers")


def check_results(operation: str, results: Any, inputs: Any) -> None:
    """Raise unless this process can take memory for the results of a program on CPUs, before it is compiled.

    ``inputs``: those of the inputs, whose memory the results may take over.
    """
    many, given = [sum(bytes_of(x.shape, x.dtype) for x in jax.tree.leaves(tree)) for tree in (results, inputs)]
    _check_free(operation, "the results", many - given, "use smaller sizes or a narrower dtype")


def check_compiled(operation: str, compiled: Any, ranks: int) -> None:
    """Raise unless this process can take memory for the results and intermediate values of a program on CPUs."""
    found = compiled.memory_analysis()
    if found is None:
        return
    wanted = ranks * (found.temp_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes)
    _check_free(operation, "results and intermediate values", wanted, "use smaller sizes or a narrower dtype")


def check_layouts(operation: str, layouts: Iterable) -> None:
    """Raise unless the physical arrays of global tensors fit: their bytes can be counted, and are available on CPUs."""
    for layout in layouts:
        check_bytes(operation, layout.physical_shape, layout.dtype)
        place = layout.placement
        if place.type == "cpu" and place.is_present:
            here = place.size
            if place.spans_processes:
                here = sum(d.process_index == jax.process_index() for d in place.devices.flat)
            check_memory(operation, [(layout.local_shape, layout.dtype)], here)


def _units(count: int) -> str:
    for unit, size in (("EiB", 60), ("PiB", 50), ("TiB", 40), ("GiB", 30)):
        if count >> size:
            return f"{count / (1 << size):.1f} {unit}"
    return f"{count / (1 << 20):.1f} MiB"


def out_of_memory(operation: str, seen: str, error: BaseException) -> OutOfMemoryError | None:
    """Return the error to raise where Python, NumPy or XLA got no memory; None for another error."""
    text = str(error)
    of_xla = type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError") and (
        "RESOURCE_EXHAUSTED" in text or "Out of memory" in text
    )
    if not of_xla and not isinstance(error, MemoryError):
        return None
    rule = text.strip().split("\n")[0] or "there is no memory for it"
    return OutOfMemoryError(operation, seen, rule, "use smaller sizes or a narrower dtype, or free other tensors")
