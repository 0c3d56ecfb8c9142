"""Collectives on Python objects: pickled to bytes, which travel like tensors; their sizes first.

Only for objects of ranks that are trusted: unpickling runs code.
"""

from __future__ import annotations

import pickle
from typing import Any

import jax.numpy as jnp
import numpy as np

from sbpjax.errors import OpValueError, message

from . import bodies
from .group import ProcessGroup, group_of, run


def _bytes(obj) -> np.ndarray:
    return np.frombuffer(pickle.dumps(obj), np.uint8)


def _padded(data: np.ndarray, size: int):
    """Return the bytes in a length that is a power of two, so that few programs are compiled."""
    length = 1 << max(6, int(size - 1).bit_length())
    return jnp.asarray(np.pad(data, (0, length - len(data))))


def all_gather_object(object_list: list, obj: Any, group: ProcessGroup | None = None) -> None:
    """Put the object of every rank into ``object_list``, in the order of the ranks, on every rank."""
    asked, group = "all_gather_object(object_list, obj)", group_of(group)
    if group.rank() < 0:
        return
    if len(object_list) != group.size():
        rule = f"the list has one entry per rank of the group: {group.size()}"
        raise OpValueError(message(asked, f"{len(object_list)} entries", rule, f"[None] * {group.size()}"))
    object_list[:] = _gathered(asked, obj, group)


def _gathered(asked: str, obj, group: ProcessGroup) -> list:
    data = _bytes(obj)
    (sizes,) = run(asked, bodies.all_gather, group, [jnp.asarray(np.array([len(data)], np.int64))])
    sizes = np.asarray(sizes).reshape(-1)
    (rows,) = run(asked, bodies.all_gather, group, [_padded(data, int(sizes.max()))])
    rows = np.asarray(rows)
    return [pickle.loads(rows[k, : sizes[k]].tobytes()) for k in range(len(sizes))]


def gather_object(obj: Any, object_gather_list: list | None = None, dst: int = 0, group: ProcessGroup | None = None):
    """Put the object of every rank into ``object_gather_list`` on rank ``dst``."""
    asked, group = f"gather_object(obj, object_gather_list, dst={dst})", group_of(group)
    if group.rank() < 0:
        return
    receives = group.rank() == group.index(dst, asked)
    if receives and (object_gather_list is None or len(object_gather_list) != group.size()):
        rule = f"on rank dst the list has one entry per rank of the group: {group.size()}"
        raise OpValueError(message(asked, f"{object_gather_list!r}", rule, f"[None] * {group.size()}"))
    found = _gathered(asked, obj, group)
    if receives and object_gather_list is not None:
        object_gather_list[:] = found


def broadcast_object_list(object_list: list, src: int = 0, group: ProcessGroup | None = None, device=None) -> None:
    """Replace the objects of the list on every rank by those of rank ``src``; the lists have one length."""
    asked, group = f"broadcast_object_list(object_list, src={src})", group_of(group)
    if group.rank() < 0:
        return
    object_list[:] = _from(asked, list(object_list), src, group)


def scatter_object_list(
    scatter_object_output_list: list,
    scatter_object_input_list: list | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
) -> None:
    """Put the k-th object of rank ``src``'s list into the first entry of the output list on rank k of the group."""
    asked, group = f"scatter_object_list(out, in, src={src})", group_of(group)
    if group.rank() < 0:
        return
    given = scatter_object_input_list
    if group.rank() == group.index(src, asked) and (given is None or len(given) != group.size()):
        rule = f"on rank src the input list has one object per rank of the group: {group.size()}"
        raise OpValueError(message(asked, f"{given!r}", rule, f"a list of {group.size()} objects"))
    scatter_object_output_list[:1] = [list(_from(asked, given, src, group))[group.rank()]]


def _from(asked: str, obj: Any, src: int, group: ProcessGroup) -> Any:
    static = (("src", group.index(src, asked)),)
    speaks = group.rank() == static[0][1]
    data = _bytes(obj) if speaks else np.zeros(0, np.uint8)
    (size,) = run(asked, bodies.broadcast, group, [jnp.asarray(np.array([len(data)], np.int64))], static)
    size = int(np.asarray(size)[0])
    (row,) = run(asked, bodies.broadcast, group, [_padded(data, size)], static)
    return obj if speaks else pickle.loads(np.asarray(row)[:size].tobytes())
