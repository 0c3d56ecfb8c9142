"""Tensor printing: PyTorch's format, summarised when large, with placement and sbp for a global tensor.

    tensor([[0., 1.],
            [2., 3.]], placement=sbpjax.placement(type="cpu", ranks=[0, 1]), sbp=(sbpjax.sbp.split(dim=0),), dtype=…)

Only the printed elements are read: the corners of a large tensor are cut out on the devices first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sbpjax._core import functions, naming
from sbpjax._core.tensor.creation.convert import fetch_to_host
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.device import default_jax_device, from_jax_device
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.payload import is_array, is_traced, node_of, refresh_tensor


@dataclass
class PrintOptions:
    """Settings of printing.

    Attributes:
        precision: digits after the point.
        threshold: more elements than this are summarised.
        edgeitems: the number printed at each end of a summarised dim.
        linewidth: characters per line.
        profile: unused; accepted for PyTorch.
        sci_mode: scientific notation always (True), never (False), or where it is needed (None).
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    profile: str | None = None
    sci_mode: bool | None = None


options = PrintOptions()


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Set how tensors print; ``profile`` is ``"default"``, ``"short"`` or ``"full"``."""
    if profile == "default":
        options.precision, options.threshold, options.edgeitems, options.linewidth = 4, 1000, 3, 80
    elif profile == "short":
        options.precision, options.threshold, options.edgeitems, options.linewidth = 2, 1000, 2, 80
    elif profile == "full":
        options.precision, options.threshold, options.edgeitems, options.linewidth = 4, math.inf, 3, 80
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


# ----------------------------------------------------------------------------------------------------------- one number


class _Formatter:
    """Formats every element of one tensor in the same width."""

    def __init__(self, values: np.ndarray) -> None:
        self.floating = values.dtype.kind == "f"
        self.whole = True
        self.scientific = False
        self.width = 1
        if not self.floating:
            self.width = max((len(str(v)) for v in values.ravel().tolist()), default=1)
            return
        usable = values[np.isfinite(values) & (values != 0)].astype(np.float64)
        if usable.size:
            size = np.abs(usable)
            self.whole = bool((usable == np.ceil(usable)).all())
            low, high = size.min(), size.max()
            self.scientific = bool(high / low > 1000.0 or high > 1.0e8 or (not self.whole and low < 1.0e-4))
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        self.width = max((len(self.text(v)) for v in usable.tolist()), default=1)

    def text(self, value) -> str:
        if not self.floating:
            return str(value)
        if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        if self.scientific:
            return f"{value:.{options.precision}e}"
        return f"{value:.0f}." if self.whole else f"{value:.{options.precision}f}"

    def __call__(self, value) -> str:
        return self.text(value).rjust(self.width)


class _ComplexFormatter:
    def __init__(self, values: np.ndarray) -> None:
        self.real, self.imag = _Formatter(np.real(values)), _Formatter(np.imag(values))
        self.width = self.real.width + self.imag.width + 2

    def __call__(self, value) -> str:
        imag = self.imag.text(value.imag)
        sign = "" if imag.startswith("-") else "+"
        return f"{self.real(value.real)}{sign}{imag.strip()}j"


# ------------------------------------------------------------------------------------------------------------ the block


def _line(values: list, formatter, indent: int, cut: bool) -> str:
    per_line = max(1, (options.linewidth - indent) // (formatter.width + 2))
    edge = options.edgeitems
    if cut and len(values) > 2 * edge:
        items = [formatter(v) for v in values[:edge]] + [" ..."] + [formatter(v) for v in values[-edge:]]
    else:
        items = [formatter(v) for v in values]
    lines = [items[i : i + per_line] for i in range(0, len(items), per_line)] or [[]]
    return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


def _block(values: np.ndarray, formatter, indent: int, cut: bool) -> str:
    if values.ndim == 0:
        return formatter(values.item())
    if values.ndim == 1:
        return _line(values.tolist(), formatter, indent, cut)
    edge = options.edgeitems
    if cut and values.shape[0] > 2 * edge:
        rows = [_block(v, formatter, indent + 1, cut) for v in values[:edge]]
        rows += ["..."]
        rows += [_block(v, formatter, indent + 1, cut) for v in values[-edge:]]
    else:
        rows = [_block(v, formatter, indent + 1, cut) for v in values]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def _corners(x: Tensor) -> Tensor:
    """Return the elements that a summary shows, plus one along each cut dim so that it still counts as cut."""
    keep = 2 * options.edgeitems + 1
    for dim, n in enumerate(x.shape):
        if n > keep:
            head = x.narrow(dim, 0, options.edgeitems + 1)
            x = functions.cat([head, x.narrow(dim, n - options.edgeitems, options.edgeitems)], dim)
    return x


def _values(x: Tensor) -> tuple[np.ndarray, bool]:
    cut = x.shape.numel() > options.threshold
    plain = x.detach()
    if cut:
        before, mode.grad = mode.grad, False
        try:
            plain = _corners(plain)
        finally:
            mode.grad = before
    values = fetch_to_host(plain)
    if values.dtype.kind == "V":  # bfloat16 and the float8 types
        values = values.astype(np.float32)
    return values, cut


def _suffixes(x: Tensor) -> list[str]:
    found = []
    if x.layout is not None:
        found += [f"placement={x.placement!r}", f"sbp={x.sbp}"]
    elif is_array(x) and x.device != from_jax_device(default_jax_device()):
        found.append(f"device='{x.device}'")
    elif x.is_meta:
        found.append("device='meta'")
    if x.is_lazy:
        return found
    if (
        x.layout is not None
        or naming.is_oneflow()
        or x.dtype
        not in (
            dtypes.get_default_dtype(),
            dtypes.int64,
            dtypes.bool_,
            dtypes.complex64,
        )
    ):
        found.append(f"dtype={x.dtype!r}")
    elif x.shape.numel() == 0 and x.dtype != dtypes.get_default_dtype():
        found.append(f"dtype={x.dtype!r}")
    if x.requires_grad:
        if not x.is_leaf:
            found.append(f"grad_fn=<{_node_name(node_of(x))}>")
        elif x.layout is not None:
            found.append("grad_fn=<accumulate_grad>")
        else:
            found.append("requires_grad=True")
    return found


def _node_name(node) -> str:
    """Return a node's name, ``scalar_`` before it where one input was a number."""
    entry = getattr(node, "entry", None)
    structs = getattr(entry, "_structs", ())
    if len(structs) == 2 and any(s is not None and s.weak_type for s in structs):
        return f"scalar_{node.name()}"
    return node.name()


def text_of(x: Tensor) -> str:
    """Return the printed form of a tensor."""
    refresh_tensor(x)
    if is_traced(x):
        where = f", placement={x.placement!r}" if x.layout is not None else ""
        return f"tensor(..., shape={tuple(x.shape)}, dtype={x.dtype!r}{where}, traced)"
    suffixes = _suffixes(x)
    if x.is_meta:
        return f"tensor({', '.join(['...', f'size={tuple(x.shape)}', *suffixes])})"
    if x.shape.numel() == 0:
        body = "[]"
        if x.ndim != 1:
            suffixes.insert(0, f"size={tuple(x.shape)}")
    else:
        values, cut = _values(x)
        formatter = (_ComplexFormatter if values.dtype.kind == "c" else _Formatter)(values)
        body = _block(values, formatter, len("tensor("), cut)
    out = "tensor(" + body
    width = len(out) - out.rfind("\n") - 1
    for suffix in suffixes:
        if width + len(suffix) + 2 > options.linewidth:
            out += ",\n" + " " * len("tensor(") + suffix
            width = len("tensor(") + len(suffix)
        else:
            out += ", " + suffix
            width += len(suffix) + 2
    return out + ")"


def format_tensor(self: Tensor, spec: str) -> str:
    """Return the formatted number of a 0-d tensor, the printed form of any other (and of a `Parameter`)."""
    has_value = not (self.is_meta or is_traced(self))
    number = self.ndim == 0 and (spec or (type(self) is Tensor and has_value))
    return format(self.item(), spec) if number else object.__format__(self, spec)
