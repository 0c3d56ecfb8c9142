r"""safetensors in and out, and Hugging Face's checkpoints of several files.

    state = checkpoint.load_safetensors("model.safetensors", placement=p, sbp=sbpjax.sbp.split(0))
    checkpoint.load_safetensors("gpt2/", into=model.state_dict(), names=[(r"^h\\.", "transformer.h.")])

A file is a header of JSON and the raw bytes of the tensors. It is mapped into memory, and every device gets the slice
that it will hold, so no process reads more than its parts, and none holds a whole large tensor.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from sbpjax import world as _world
from sbpjax.autograd import no_grad
from sbpjax.errors import CheckpointError, message
from sbpjax.sbp import eager
from sbpjax.sbp.placement import placement as Placement
from sbpjax.tensor import dtype as dtypes
from sbpjax.tensor.dispatch import wrap_any
from sbpjax.tensor.from_data import tensor
from sbpjax.tensor.tensor import Tensor

from .document import chosen
from .loading import fitting

_DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_, "C64": np.complex64,
}  # fmt: skip
_NAMES = {np.dtype(v): k for k, v in _DTYPES.items()}
Names = Mapping[str, str] | Sequence[tuple[str, str]] | Callable[[str], str | None] | None


def open_safetensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the tensors of a file, or of a directory with Hugging Face's index, as arrays mapped into memory.

    Raises:
        CheckpointError: it is no such file, or damaged.
    """
    path = Path(path)
    if not path.is_dir():
        return _mapped(path)
    index = sorted(path.glob("*.safetensors.index.json"))
    if index:
        files = json.loads(index[0].read_text(encoding="utf-8"))["weight_map"]
        parts = {name: _mapped(path / name) for name in sorted(set(files.values()))}
        return {name: _found(parts[file], name, path / file) for name, file in files.items()}
    found: dict[str, np.ndarray] = {}
    for file in sorted(path.glob("*.safetensors")):
        found.update(_mapped(file))
    if not found:
        raise _no_file(path, "no *.safetensors in that directory")
    return found


def _found(part: dict, name: str, file: Path) -> np.ndarray:
    if name not in part:
        raise _no_file(file, f"no tensor {name!r}, which the index says is there")
    return part[name]


def _no_file(path: Path, seen: str) -> CheckpointError:
    rule = "a safetensors file is a header of JSON and the bytes of the tensors that it lists"
    return CheckpointError(message(f"reading {str(path)!r}", seen, rule, "check the path, or download the file again"))


def _mapped(path: Path) -> dict[str, np.ndarray]:
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= size - 8:
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            header = json.loads(file.read(length))
        data = np.memmap(path, np.uint8, "r", offset=8 + length) if size > 8 + length else np.zeros(0, np.uint8)
        result = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            start, end = entry["data_offsets"]
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
            if not 0 <= start <= end <= data.size or end - start != dtype.itemsize * int(np.prod(shape)):
                raise ValueError(f"{name!r} at bytes {start} to {end} of {data.size}, {entry['dtype']}{list(shape)}")
            result[name] = data[start:end].view(dtype).reshape(shape)
        return result
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _no_file(path, f"{type(error).__name__}: {error}") from None


def renamed(arrays: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Return arrays under other names.

    Args:
        arrays: by name.
        names: a dict of old → new names (others stay), a list of ``(pattern, replacement)`` as of `re.sub`, or a
            function of a name; a name that becomes None or empty is left out.
    """
    if names is None:
        return dict(arrays)
    rename = _renaming(names)
    return {new: array for name, array in arrays.items() if (new := rename(name))}


def _renaming(names: Any) -> Callable[[str], Any]:
    if isinstance(names, Mapping):
        return lambda name: names.get(name, name)
    if callable(names):
        return names

    def rename(name: str) -> str:
        for pattern, replacement in names:
            name = re.sub(pattern, replacement, name)
        return name

    return rename


def placed(
    arrays: Mapping[str, np.ndarray], into: Mapping[str, Tensor] | None, placement: Placement | None, sbp: Any
) -> dict[str, Tensor]:
    """Return host arrays as tensors: in those of ``into``, on a placement, or local.

    Raises:
        CheckpointError: a tensor of ``into`` is missing or has another shape; nothing is written then.
    """
    if into is None:
        return {name: _placed(array, placement, sbp) for name, array in arrays.items()}
    for name, x in into.items():
        if name not in arrays or tuple(arrays[name].shape) != tuple(x.shape):
            seen = f"{name}: {list(arrays[name].shape) if name in arrays else 'not in the file'}, {list(x.shape)} here"
            fix = "names= renames what the file has; pattern= loads a part"
            raise CheckpointError(message("loading weights", seen, "every tensor of `into` is in the file", fix))
    for name, x in into.items():
        layout = x._fresh()._layout
        made = _placed(arrays[name], *((None, None) if layout is None else (layout.placement, layout.sbp)))
        with no_grad():
            x.copy_(made.to(x.dtype) if made.dtype != x.dtype else made)
    return dict(into)


def _placed(array: np.ndarray, placement: Placement | None, sbp: Any) -> Tensor:
    if placement is None:
        return tensor(np.array(array))
    return wrap_any(*eager.from_logical(array, placement, fitting(sbp, placement, array.ndim)))


def load_safetensors(
    path: str | os.PathLike,
    *,
    into: Mapping[str, Tensor] | None = None,
    placement: Placement | None = None,
    sbp: Any = None,
    pattern: str | list[str] | None = None,
    names: Names = None,
) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file or of a Hugging Face directory, or write them into tensors.

    Args:
        path: the file or directory.
        into: a flat state such as ``model.state_dict()``: its tensors are written in place, each in its own layout.
        placement: without ``into``: make the tensors global there; else they are local.
        sbp: with ``placement``, their nd-sbp; broadcast by default.
        pattern: load only the (new) names that match.
        names: how names change, see `renamed`.

    Raises:
        CheckpointError: the file is damaged, or does not fit ``into``; nothing is written then.
    """
    arrays = renamed(open_safetensors(path), names)
    wanted = chosen(arrays, pattern)
    if into is not None and pattern is not None:
        into = {name: x for name, x in into.items() if name in wanted}
    return placed({name: arrays[name] for name in wanted}, into, placement, sbp)


def save_safetensors(state: Mapping[str, Tensor], path: str | os.PathLike, metadata: dict[str, str] | None = None):
    """Write a flat state as one safetensors file; all processes call it, process 0 writes.

    Tensors are fetched and written one after the other, so that the host holds one of them at a time.

    Raises:
        CheckpointError: an entry is no tensor, or has a dtype that the format lacks.
    """
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    start = 0
    for name, x in state.items():
        dtype = x.dtype.np if isinstance(x, Tensor) else None
        if dtype is None or np.dtype(dtype) not in _NAMES:
            seen = f"{name!r} is a {type(x).__name__}{'' if dtype is None else f' of {dtype}'}"
            rule = f"the format holds tensors of {', '.join(_NAMES.values())}"
            raise CheckpointError(message("save_safetensors(state, path)", seen, rule, "leave it out, or convert it"))
        size = dtypes.of(dtype).itemsize * x.shape.numel()
        header[name] = {"dtype": _NAMES[np.dtype(dtype)], "shape": list(x.shape), "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    world, path = _world.current(), Path(path)
    partial = path.with_name(path.name + ".partial")
    file = open(partial, "wb") if world.rank == 0 else None
    try:
        if file is not None:
            file.write(len(text).to_bytes(8, "little") + text)
        for x in state.values():
            value = np.ascontiguousarray(x.detach().numpy())
            if file is not None:
                file.write(value.tobytes())
    finally:
        if file is not None:
            file.close()
    if file is not None:
        partial.rename(path)
    world.exchange(f"save_safetensors({str(path)!r})", None)
