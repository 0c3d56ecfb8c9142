r"""safetensors files and sharded Hugging Face checkpoints: load in any layout, and save.

    state = checkpoint.load_safetensors("model.safetensors", placement=p, sbp=sbpjax.sbp.split(0))
    checkpoint.load_safetensors("gpt2/", into=model.state_dict(), names=[(r"^h\\.", "transformer.h.")])

A file is a JSON header and the raw bytes of the tensors. It is mapped into memory, and every device gets its own slice,
so no process reads more than its parts or holds a whole large tensor.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import ml_dtypes
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.runtime import processes
from sbpjax._core.tensor.creation.from_data import tensor
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor, wrap_any
from sbpjax._core.tensor.storage.payload import refresh_tensor
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import CheckpointError, nearest
from sbpjax.sbp.placement import placement as Placement

from .loading import fit_sbp
from .restore_plan import is_lossless_cast
from .tree import select_names

_DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_, "C64": np.complex64,
}  # fmt: skip
_MOST_HEADER = 100_000_000  # bytes, as the format has it
_NAMES = {np.dtype(v): k for k, v in _DTYPES.items()}
Names = Mapping[str, str] | Sequence[tuple[str, str]] | Callable[[str], str | None] | None


def open_safetensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the tensors of a file, or of a directory with Hugging Face's index, as arrays mapped into memory.

    Raises:
        CheckpointError: it is no such file, or damaged.
    """
    path = Path(path)
    if not path.is_dir():
        return _map_file(path)
    index = sorted(path.glob("*.safetensors.index.json"))
    if index:
        files = _weight_map(index[0])
        parts = {name: _map_file(path / name) for name in sorted(set(files.values()))}
        return {name: _find_array(parts[file], name, path / file) for name, file in files.items()}
    found: dict[str, np.ndarray] = {}
    for file in sorted(path.glob("*.safetensors")):
        found.update(_map_file(file))
    if not found:
        raise _no_file(path, "no *.safetensors in that directory")
    return found


def _weight_map(index: Path) -> dict[str, str]:
    """Return the file of each tensor: files beside the index, wherever the index places them.

    The index comes with the checkpoint, from an untrusted author, and must not name other files of this machine. A
    file may be a link out of the directory only where the index is one itself, as in the cache of `huggingface_hub`,
    where both lead into the store of the same repository.
    """
    try:
        files = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        if type(files) is not dict or any(type(f) is not str or "\0" in f for f in files.values()):
            raise ValueError("its weight_map is no table of file names")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _no_file(index, f"{type(error).__name__}: {error}") from None
    for file in set(files.values()):
        parts = PurePosixPath(file).parts
        if not parts or ".." in parts or PurePosixPath(file).is_absolute() or PureWindowsPath(file).anchor:
            raise _no_file(index, f"the index names {file!r}, which is not below its directory")
        homes = (index.parent.resolve(), index.resolve().parent)
        if not any((index.parent / file).resolve().is_relative_to(home) for home in homes):
            raise _no_file(index, f"the index names {file!r}, a link out of its directory")
    return files


def _find_array(part: dict, name: str, file: Path) -> np.ndarray:
    if name not in part:
        raise _no_file(file, f"no tensor {name!r}, which the index lists")
    return part[name]


def _no_file(path: Path, seen: str) -> CheckpointError:
    rule = "a safetensors file is a header of JSON and the bytes of the tensors that it lists"
    return CheckpointError(f"reading {str(path)!r}", seen, rule, "check the path, or download the file again")


def _map_file(path: Path) -> dict[str, np.ndarray]:
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(size - 8, _MOST_HEADER):
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            header = json.loads(file.read(length))
        data = np.memmap(path, np.uint8, "r", offset=8 + length) if size > 8 + length else np.zeros(0, np.uint8)
        entries = {name: _entry(name, entry) for name, entry in header.items() if name != "__metadata__"}
        _check_spans([(start, end) for start, end, _, _ in entries.values()], data.size)
        return {name: data[start:end].view(d).reshape(shape) for name, (start, end, d, shape) in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _no_file(path, f"{type(error).__name__}: {error}") from None


def _entry(name: str, entry: dict) -> tuple[int, int, np.dtype, tuple[int, ...]]:
    """Return where a tensor begins and ends, its dtype and shape; integers that fit each other."""
    (start, end), shape, dtype = entry["data_offsets"], entry["shape"], np.dtype(_DTYPES[entry["dtype"]])
    if not all(type(n) is int and n >= 0 for n in (start, end, *shape)) or type(shape) is not list:
        raise ValueError(f"{name!r} with offsets or sizes that are none")
    if end - start != dtype.itemsize * math.prod(shape):
        raise ValueError(f"{name!r} at bytes {start} to {end}, {entry['dtype']}{shape}")
    return start, end, dtype, tuple(shape)


def _check_spans(spans: list[tuple[int, int]], size: int) -> None:
    """Reject tensors that exceed the file, overlap or leave bytes unused, as the format requires."""
    at = 0
    for start, end in sorted(spans):
        if start != at:
            raise ValueError(f"a tensor from byte {start}, where {at} is next")
        at = end
    if at != size:
        raise ValueError(f"tensors to byte {at} of {size}")


def rename_arrays(arrays: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Return arrays under other names.

    Args:
        arrays: by name.
        names: a dict of old → new names (others stay), a list of ``(pattern, replacement)`` as of `re.sub`, or a
            function of a name; a name that becomes None or empty is left out.
    """
    if names is None:
        return dict(arrays)
    rename = _make_renamer(names)
    return {new: array for name, array in arrays.items() if (new := rename(name))}


def _make_renamer(names: Any) -> Callable[[str], Any]:
    if isinstance(names, Mapping):
        return lambda name: names.get(name, name)
    if callable(names):
        return names

    def rename(name: str) -> str:
        for pattern, replacement in names:
            name = re.sub(pattern, replacement, name)
        return name

    return rename


def place_arrays(
    arrays: Mapping[str, np.ndarray],
    into: Mapping[str, Tensor] | None,
    placement: Placement | None,
    sbp: Any,
    cast: bool = False,
) -> dict[str, Tensor]:
    """Return host arrays as tensors: in those of ``into``, on a placement, or local.

    Raises:
        CheckpointError: a tensor of ``into`` is missing, has another shape, or, without ``cast``, a dtype that does
            not hold all values of the array's; nothing is written then.
    """
    if into is None:
        return {name: _place_array(array, placement, sbp) for name, array in arrays.items()}
    for name, x in into.items():
        if name not in arrays:
            raise _missing_tensor_error(name, into, arrays)
        if tuple(arrays[name].shape) != tuple(x.shape):
            seen = f"{name}: {list(arrays[name].shape)} in the file, {list(x.shape)} here"
            rule = "a tensor of `into` takes the file's of its name if their shapes are equal"
            fix = "the file of this very model; or pattern= loads only the names that fit it"
            raise CheckpointError("loading weights", seen, rule, fix)
        if not cast and not is_lossless_cast(dtypes.as_dtype(x.dtype).np, arrays[name].dtype):
            seen, rule = (
                f"{name}: {arrays[name].dtype} in the file, {x.dtype.name} here",
                "no value changes by its dtype",
            )
            raise CheckpointError("loading weights", seen, rule, "cast=True allows the loss")
    for name, x in into.items():
        layout = refresh_tensor(x).layout
        made = _place_array(arrays[name], *((None, None) if layout is None else (layout.placement, layout.sbp)))
        with no_grad():
            x.copy_(made.to(x.dtype) if made.dtype != x.dtype else made)
    return dict(into)


def _missing_tensor_error(name: str, into: Mapping[str, Tensor], arrays: Mapping[str, np.ndarray]) -> CheckpointError:
    missing, over = [n for n in into if n not in arrays], [n for n in arrays if n not in into]
    seen = f"{name} is not in the file, which lacks {len(missing)} of {len(into)} names"
    fix = "pattern= loads only the names that match"
    if over:
        seen += f", and has {len(over)} others, such as {over[0]}"
        like = nearest(name, over) or next((n for n in over if n.endswith(name) or name.endswith(n)), over[0])
        fix = f"names={{{like!r}: {name!r}, ...}} renames the tensors of the file; {fix}"
    return CheckpointError("loading weights", seen, "every tensor of `into` is in the file, under its name", fix)


def _place_array(array: np.ndarray, placement: Placement | None, sbp: Any) -> Tensor:
    if placement is None:
        return tensor(np.array(array))
    return wrap_any(*conversions.from_logical(array, placement, fit_sbp(sbp, placement, array.ndim)))


def load_safetensors(
    path: str | os.PathLike,
    *,
    into: Mapping[str, Tensor] | None = None,
    placement: Placement | None = None,
    sbp: Any = None,
    pattern: str | list[str] | None = None,
    names: Names = None,
    cast: bool = False,
) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file or of a Hugging Face directory, or write them into tensors.

    Args:
        path: the file or directory.
        into: a flat state such as ``model.state_dict()``: its tensors are written in place, each in its own layout.
        placement: without ``into``: make the tensors global there; else they are local.
        sbp: with ``placement``, their nd-sbp; broadcast by default.
        pattern: load only the (new) names that match.
        names: how names change, see `rename_arrays`.
        cast: allow dtypes in ``into`` that do not hold all values of the file's: float32 into bfloat16.

    Raises:
        CheckpointError: the file is damaged, or does not fit ``into``; nothing is written then.
    """
    arrays = rename_arrays(open_safetensors(path), names)
    wanted = select_names(arrays, pattern)
    if into is not None and pattern is not None:
        into = {name: x for name, x in into.items() if name in wanted}
    return place_arrays({name: arrays[name] for name in wanted}, into, placement, sbp, cast)


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
            raise CheckpointError("save_safetensors(state, path)", seen, rule, "leave it out, or convert it")
        size = dtypes.as_dtype(dtype).itemsize * x.shape.numel()
        header[name] = {"dtype": _NAMES[np.dtype(dtype)], "shape": list(x.shape), "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    world, path = processes.current(), Path(path)
    partial = path.with_name(path.name + ".partial")
    values = (np.ascontiguousarray(x.detach().numpy()) for x in state.values())
    error = _write_file(partial, path, text, values) if world.rank == 0 else None
    for _ in values:  # reading a global tensor is collective: all ranks take part, even if rank 0's disk is full
        pass
    gathered = world.exchange(f"save_safetensors({str(path)!r})", error)
    if gathered[0] is not None:
        fix = "check the directory; its previous files are as before"
        raise CheckpointError(f"save_safetensors(state, {str(path)!r})", gathered[0], "rank 0 can write there", fix)


def _write_file(partial: Path, path: Path, header: bytes, values: Iterator[np.ndarray]) -> str | None:
    """Write a file and rename it; on failure, return the error and leave no file."""
    try:
        with open(partial, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            for value in values:
                file.write(value.tobytes())
        partial.rename(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        return f"{type(error).__name__}: {error}"
    return None
