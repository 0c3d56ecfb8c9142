"""Allowlist of custom calls in a loaded program, with checks of their buffers.

A program in StableHLO computes on its own values; only a ``custom_call`` reaches code of another library. That code
takes addresses, and sizes that it reads from some of the buffers: ``lapack_sgetrf_ffi`` on a 300 × 300 matrix writes
300 pivots, however many its result buffer has. So a program from a file is read operation by operation:

* operations are of StableHLO, CHLO, Shardy and ``func``, and do not talk to the host;
* a call is in the table below, and its buffers have the shapes, element types and layouts that JAX would give it.

Anything else needs a signature or the user's explicit trust (`sbpjax.load_graph`), and a call back into Python is
always refused: it is a number that stands for an object of the process that exported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from jax.extend.mlir import ir

from sbpjax._core.engines.program import parse_program as parse_program

_DIALECTS = ("stablehlo.", "chlo.", "sdy.", "func.", "builtin.module")
_HOST = {"stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv"}
_CALLBACK = re.compile("callback|py_client|pyfunc|custom.?spmd|partitioned|call_tf", re.IGNORECASE)
# Attributes of a call that do not concern its buffers, or are checked here.
_NAMED = {
    "call_target_name", "mhlo.backend_config", "backend_config", "mhlo.frontend_attributes", "operand_layouts",
    "result_layouts", "output_operand_aliases", "sdy.sharding_rule", "sdy.sharding", "mhlo.sharding", "api_version",
}  # fmt: skip

# Buffers of each call: the dims after any batch dims, a colon, the element type. m, n, j are sizes; k is min(m, n), p
# is n - 1, u and v depend on the mode. Type t is the matrix's, r its real and c its complex counterpart, i int32.
_LAPACK = {
    "getrf": "mn:t -> mn:t k:i :i",
    "potrf": "nn:t -> nn:t :i",
    "geqrf": "mn:t -> mn:t k:t",
    "orgqr": "mn:t j:t -> mn:t",
    "ungqr": "mn:t j:t -> mn:t",
    "syevd": "nn:t -> nn:t n:r :i",
    "heevd": "nn:t -> nn:t n:r :i",
    "gesdd": "mn:t -> mn:t k:r mu:t vn:t :i",
    "gehrd": "nn:t -> nn:t p:t :i",
    "sytrd": "nn:t -> nn:t n:r p:r p:t :i",
    "hetrd": "nn:t -> nn:t n:r p:r p:t :i",
    "gtsv": "n:t n:t n:t nm:t -> n:t n:t n:t nm:t :i",
}
_BY_KIND = {  # real and complex calls that differ
    "geev": ("nn:t -> n:t n:t nn:c nn:c :i", "nn:t -> n:t nn:t nn:t :i"),
    "gees": ("nn:t -> nn:t nn:t n:t n:t :i :i", "nn:t -> nn:t nn:t n:t :i :i"),
}
_TRSM = {"L": "mm:t mn:t -> mn:t", "R": "nn:t mn:t -> mn:t"}
_PIVOTS = "n:i -> m:i"
_OTHERS = {
    "cusolver_getrf_ffi": _LAPACK["getrf"],
    "cusolver_potrf_ffi": _LAPACK["potrf"],
    "cusolver_geqrf_ffi": _LAPACK["geqrf"],
    "cusolver_orgqr_ffi": _LAPACK["orgqr"],
    "cusolver_syevd_ffi": _LAPACK["syevd"],
    "cusolver_sytrd_ffi": _LAPACK["sytrd"],
    "cusolver_gesvdj_ffi": "mn:t -> mn:t k:r mm:t nn:t :i",
    "cusparse_gtsv2_ffi": "n:t n:t n:t nm:t -> nm:t",
    "cu_lu_pivots_to_permutation": _PIVOTS,
    # Calls that the compiler itself expands, on TPU:
    "Qr": _LAPACK["geqrf"],
    "ProductOfElementaryHouseholderReflectors": _LAPACK["orgqr"],
    "Eigh": "nn:t -> nn:t n:r",
    "LuDecomposition": "mn:t -> mn:t k:i m:i",
}
_OTHERS |= {name.replace("cusolver", "hipsolver"): row for name, row in _OTHERS.items() if "cusolver" in name}
_OTHERS["hip_lu_pivots_to_permutation"] = _OTHERS["cu_lu_pivots_to_permutation"]

_TYPES = {"s": "f32", "d": "f64", "c": "complex<f32>", "z": "complex<f64>"}
# Allowed values of a letter among a LAPACK call's options.
_LETTERS = {
    "uplo": "UL", "diag": "UN", "side": "LR", "trans_x": "NTC", "sort": "N", "compute_left": "VN",
    "compute_right": "VN",
}  # fmt: skip
_MODES = {"gesdd": "ASN", "syevd": "VN", "heevd": "VN", "gees": "VN"}


class _CallMismatch(ValueError):
    """A call differs from JAX's own form."""


def callbacks(module: ir.Module) -> list[str]:
    """Return the calls back into Python."""
    names = (_target(op) for op in _operations(module.operation) if op.name == "stablehlo.custom_call")
    return sorted({name for name in names if _CALLBACK.search(name)})


def unsafe_operations(module: ir.Module) -> list[str]:
    """Return the parts of a program that are not known to stay within its buffers, each with the reason."""
    found: dict[str, None] = {}
    for op in _operations(module.operation):
        if op.name == "stablehlo.custom_call":
            try:
                _check(op)
            except _CallMismatch as reason:
                found[f"{_target(op)}: {reason}"] = None
        elif op.name in _HOST:
            found[f"{op.name}: it talks to the host"] = None
        elif not op.name.startswith(_DIALECTS):
            found[f"{op.name}: no operation of StableHLO"] = None
    return list(found)


def _operations(root: Any) -> Iterator[Any]:
    waiting = [root]
    while waiting:
        op = waiting.pop()
        yield op
        waiting += [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]


def _name_attributes(op: Any) -> dict[str, Any]:
    names = [a if isinstance(a, str) else a.name for a in op.attributes]  # names since jaxlib 0.9
    return {name: op.attributes[name] for name in names}


def _target(op: Any) -> str:
    return ir.StringAttr(op.attributes["call_target_name"]).value


# -- one call ----------------------------------------------------------------------------------------------------------


def _check(op: Any) -> None:
    target, given = _target(op), _name_attributes(op)
    if target == "shape_assertion":  # of a free batch; the compiler evaluates it
        if len(op.results):
            raise _CallMismatch("a shape assertion with results")
        return
    if target == "Sharding":
        if [str(x.type) for x in op.operands] != [str(x.type) for x in op.results]:
            raise _CallMismatch("a sharding that changes the shape")
        return
    if "indices_of_shape_operands" in given:
        raise _CallMismatch("on a free batch: its sizes are known only when it is called")
    options = _options(given)
    row, letter = _row(target, options)
    # An unknown attribute may change how the call uses its buffers.
    if unknown := sorted(set(given) - _NAMED):
        raise _CallMismatch(f"with {', '.join(unknown)}")
    operands, results = [[_describe_type(x) for x in side] for side in (op.operands, op.results)]
    wanted_in, wanted_out = (side.split() for side in row.split("->"))
    if len(operands) != len(wanted_in) or len(results) != len(wanted_out):
        raise _CallMismatch(f"{len(operands)} operands and {len(results)} results")
    sizes = _sizes(operands, wanted_in, options)
    if row == _PIVOTS and results[0][0]:
        sizes["m"] = max(sizes["n"], results[0][0][-1])  # a permutation may be longer than its pivots
    if options.get("mode") == "N" and len(results) == 5 and len(results[2][0]) > 1:
        # Nothing is written there, and JAX gives either size.
        sizes["u"] = results[2][0][-1]
    kind = operands[0][1]
    if letter is not None and kind != letter:
        raise _CallMismatch(f"on {kind}")
    batch = operands[0][0][: len(operands[0][0]) - len(wanted_in[0].partition(":")[0])]
    # Exactly, not at least: native code reads the sizes from one buffer and trusts the others.
    for given_buffer, wanted in zip([*operands, *results], [*wanted_in, *wanted_out], strict=True):
        expected = (*batch, *[sizes[d] for d in wanted.partition(":")[0]]), _kinds(kind)[wanted[-1]]
        if given_buffer != expected:
            raise _CallMismatch(f"a buffer of {_text(*given_buffer)} where {_text(*expected)} is written or read")
    _check_layouts(given, "operand_layouts", wanted_in, len(batch))
    _check_layouts(given, "result_layouts", wanted_out, len(batch))


def _text(shape: tuple[int, ...], kind: str) -> str:
    return f"{kind}[{', '.join(map(str, shape))}]"


def _row(target: str, options: dict[str, Any]) -> tuple[str, str | None]:
    """Return the buffers of a call, and the element type in its name."""
    if target in _OTHERS:
        return _OTHERS[target], None
    match = re.fullmatch("lapack_([sdcz])([a-z]+)_ffi", target)
    if match is None:
        raise _CallMismatch("not in the table of calls")
    letter, name = match.groups()
    _check_options(name, options)
    if name == "trsm":
        return _TRSM[options["side"]], _TYPES[letter]
    if name in _BY_KIND:
        return _BY_KIND[name][letter in "cz"], _TYPES[letter]
    if name not in _LAPACK:
        raise _CallMismatch("not in the table of calls")
    return _LAPACK[name], _TYPES[letter]


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a call: letters as strings, numbers as they are."""
    found: dict[str, Any] = {}
    config = given.get("mhlo.backend_config")
    if config is None:
        return found
    for entry in ir.DictAttr(config):
        value = entry.attr.value if isinstance(entry.attr, ir.IntegerAttr) else None
        letter = value is not None and str(entry.attr.type) == "ui8"
        found[entry.name] = chr(value) if letter else value
    return found


def _check_options(name: str, options: dict[str, Any]) -> None:
    allowed = _LETTERS | ({"mode": _MODES[name]} if name in _MODES else {})
    for key, value in options.items():
        if key in allowed and (not isinstance(value, str) or value not in allowed[key]):
            raise _CallMismatch(f"{key} is {value!r}")
        if key not in allowed and (name != "gehrd" or key not in ("low", "high")):
            raise _CallMismatch(f"an option {key}")
    needed = {"trsm": {"side"}, "gesdd": {"mode"}, "gees": {"sort"}, "gehrd": {"low", "high"}}.get(name, set())
    if missing := needed - set(options):
        raise _CallMismatch(f"without {', '.join(sorted(missing))}")


def _describe_type(value: Any) -> tuple[tuple[int, ...], str]:
    kind = ir.RankedTensorType(value.type)
    if not kind.has_static_shape:
        raise _CallMismatch(f"on {kind}, whose size is not known")
    return tuple(kind.shape), str(kind.element_type)


def _sizes(operands: list, wanted: list[str], options: dict[str, Any]) -> dict[str, int]:
    """Return the size of each letter, read from the operands."""
    sizes: dict[str, int] = {}
    for (shape, _), text in zip(operands, wanted, strict=True):
        dims = text.partition(":")[0]
        if len(shape) < len(dims):
            raise _CallMismatch(f"on {len(shape)} dims")
        for letter, size in zip(dims, shape[len(shape) - len(dims) :], strict=True):
            # The first buffer gives the size; the others are compared with it, in `_check`.
            sizes.setdefault(letter, size)
    m, n = sizes.get("m", 0), sizes.get("n", 0)
    if "m" in sizes:
        sizes["k"] = min(m, n)
    if "j" in sizes and not sizes["j"] <= n <= m:
        raise _CallMismatch(f"{sizes['j']} reflectors of {m} × {n}")
    sizes["p"] = n - 1
    sizes["u"], sizes["v"] = (m, n) if options.get("mode") == "A" else (sizes.get("k", 0),) * 2
    if "low" in options and (options["low"], options["high"]) != (1, n):
        raise _CallMismatch(f"rows {options['low']} to {options['high']} of {n}")
    return sizes


def _kinds(kind: str) -> dict[str, str]:
    real = kind.removeprefix("complex<").removesuffix(">")
    return {"t": kind, "r": real, "c": f"complex<{real}>", "i": "i32"}


def _check_layouts(given: dict[str, Any], name: str, wanted: Sequence[str], batch: int) -> None:
    """Refuse layouts other than JAX's: column-major matrices, and batches of them one after the other."""
    if name not in given:
        return
    outer = list(range(batch - 1, -1, -1))
    for text, layout in zip(wanted, ir.ArrayAttr(given[name]), strict=True):
        inner = [batch + i for i in range(len(text.partition(":")[0]))]
        if list(ir.DenseIntElementsAttr(layout)) != inner + outer:
            raise _CallMismatch(f"a buffer in the layout {layout}")
