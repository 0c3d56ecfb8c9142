"""Collectives on Python objects: encoded to bytes and sent as tensors, sizes first.

    found = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, {"rank": 1, "loss": 0.3})                    # plain values: runs no code
    distributed.all_gather_object(found, my_object, allow_pickle=True)                # anything, from trusted ranks

Objects are the plain values of `_core.serialization.encoding`. With ``allow_pickle=True``, on all ranks, they are
pickled: reading a pickle runs code of its writer, so it is read only if a rank of this run signed it (see
docs/explanation/security.md). An object that one rank cannot send raises on all ranks.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from sbpjax._core.runtime import processes
from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax._core.serialization import encoding, signing
from sbpjax.errors import (
    EncodingError,
    EncodingTypeError,
    ForeignMessageError,
    OpValueError,
    SignatureError,
    page,
)

from . import bodies
from .group import ProcessGroup, group_of, run
from .p2p import pair_of

_PLAIN, _PICKLED, _REFUSED = range(3)
_MOST_BYTES = 1 << 31
_FIX = "send a description of it; among ranks that are trusted pass allow_pickle=True on all ranks"


@dataclass
class _Message:
    """Message of a rank: a kind, and signed bytes."""

    kind: int
    data: np.ndarray
    error: Exception | None = None

    def header(self) -> Any:
        return jnp.asarray(np.array([len(self.data), self.kind], np.int64))

    def pad_bytes(self, size: int) -> Any:
        """Return the bytes padded to a power of two, so that few programs are compiled."""
        length = 1 << max(6, int(size - 1).bit_length())
        return jnp.asarray(np.pad(self.data, (0, length - len(self.data))))


def _pack_object(obj: Any, group: ProcessGroup, allow_pickle: bool) -> _Message:
    error = None
    try:
        kind, body = (_PICKLED, pickle.dumps(obj)) if allow_pickle else (_PLAIN, encoding.encode(obj))
        if len(body) > _MOST_BYTES - signing.TAG_BYTES:
            raise EncodingError(f"{len(body)} bytes, where at most {_MOST_BYTES} travel")
    except Exception as raised:  # of any class, with pickle: it is sent to all ranks before it is raised here
        kind, body, error = _REFUSED, encoding.encode(f"{type(raised).__name__}: {raised}"[:2000]), raised
    signed = signing.sign(processes.current().key, _context(kind, group.rank(), group), body)
    return _Message(kind, np.frombuffer(signed, np.uint8), error)


def _context(kind: int, rank: int, group: ProcessGroup) -> str:
    return f"object of kind {kind} of rank {rank} in {list(group.ranks)}"


def _body(operation: str, kind: int, row: np.ndarray, rank: int, group: ProcessGroup) -> bytes:
    """Return the bytes that a rank of the group signed; raise if its header reports that it cannot send its object."""
    try:
        body = signing.verify_signature(processes.current().key, _context(kind, rank, group), row.tobytes())
    except SignatureError:
        raise _foreign_message_error(
            operation, f"{len(row)} bytes for rank {group.ranks[rank]} that it did not sign"
        ) from None
    if kind == _REFUSED:
        seen = f"rank {group.ranks[rank]} cannot send its object: {encoding.decode(body)}"
        rule = "objects are numbers, strings, lists, dicts and arrays, or with allow_pickle=True anything with a pickle"
        raise EncodingTypeError(operation, seen, rule, _FIX)
    return body


def _unpack_object(kind: int, body: bytes) -> Any:
    return encoding.decode(body) if kind == _PLAIN else pickle.loads(body)


def _same_kind(operation: str, kinds: np.ndarray, allow_pickle: bool, group: ProcessGroup) -> None:
    """Raise on all ranks if the headers show that only some of them allow pickles."""
    pickles = [rank for rank, kind in zip(group.ranks, kinds, strict=True) if kind == _PICKLED]
    plain = [rank for rank in group.ranks if rank not in pickles]
    mine = kinds[group.rank()] == (_PICKLED if allow_pickle else _PLAIN)  # else it was changed on the way
    if (pickles and plain) or not mine:
        seen = f"ranks {ranks_text(pickles)} pass allow_pickle=True, ranks {ranks_text(plain)} do not"
        rule = "reading a pickle runs code of its writer's choice, which every rank has to allow"
        raise EncodingTypeError(operation, seen, rule, "pass allow_pickle=True on all ranks, or on none")


def _foreign_message_error(operation: str, seen: str) -> ForeignMessageError:
    rule = "only messages of ranks with the secret of this job are read"
    fix = f"keep strangers from the network between the ranks; see {page('explanation/security.md')}"
    return ForeignMessageError(operation, seen, rule, fix)


def _largest_object_bytes(operation: str, sizes: np.ndarray) -> int:
    """Return the size in bytes of the largest object by the headers, which are not signed."""
    if sizes.min() < 0 or sizes.max() > _MOST_BYTES:
        raise _foreign_message_error(operation, f"objects of {sizes.tolist()} bytes")
    return int(sizes.max())


def all_gather_object(
    object_list: list, obj: Any, group: ProcessGroup | None = None, *, allow_pickle: bool = False
) -> None:
    """Put the object of every rank into ``object_list``, in the order of the ranks, on every rank.

    Args:
        object_list: a list with one entry per rank of the group.
        obj: a plain value, see `_core.serialization.encoding`.
        group: the ranks that take part; all by default.
        allow_pickle: send and read any object by pickle, which runs code: only among ranks that are trusted.

    Raises:
        EncodingTypeError: a rank's object is no plain value; raised on all ranks.
        ForeignMessageError: a message of a rank was not sent by it.
    """
    operation, group = "all_gather_object(object_list, obj)", group_of(group)
    if group.rank() < 0:
        return
    if len(object_list) != group.size():
        rule = f"the list has one entry per rank of the group: {group.size()}"
        raise OpValueError(operation, f"{len(object_list)} entries", rule, f"[None] * {group.size()}")
    object_list[:] = _gather_objects(operation, obj, group, allow_pickle)


def _gather_objects(operation: str, obj: Any, group: ProcessGroup, allow_pickle: bool) -> list:
    parcel = _pack_object(obj, group, allow_pickle)
    headers = _headers(operation, parcel, group)
    (rows,) = run(
        operation, bodies.all_gather, group, [parcel.pad_bytes(_largest_object_bytes(operation, headers[:, 0]))]
    )
    rows = np.asarray(rows)
    if parcel.error is not None:
        raise parcel.error
    order = sorted(range(len(headers)), key=lambda k: headers[k, 1] != _REFUSED)  # if one rank cannot send, all raise
    found = {k: _body(operation, int(headers[k, 1]), rows[k, : headers[k, 0]], k, group) for k in order}
    _same_kind(operation, headers[:, 1], allow_pickle, group)
    return [_unpack_object(int(headers[k, 1]), found[k]) for k in range(len(headers))]


def _headers(operation: str, parcel: _Message, group: ProcessGroup) -> np.ndarray:
    """Return ``[[size, kind], ...]`` of all ranks of the group."""
    (headers,) = run(operation, bodies.all_gather, group, [parcel.header()])
    return np.asarray(headers).reshape(-1, 2)


def gather_object(
    obj: Any,
    object_gather_list: list | None = None,
    dst: int = 0,
    group: ProcessGroup | None = None,
    *,
    allow_pickle: bool = False,
) -> None:
    """Put the object of every rank into ``object_gather_list`` on rank ``dst``; see `all_gather_object`."""
    operation, group = f"gather_object(obj, object_gather_list, dst={dst})", group_of(group)
    if group.rank() < 0:
        return
    receives = group.rank() == group.index(dst, operation)
    if receives and (object_gather_list is None or len(object_gather_list) != group.size()):
        rule = f"on rank dst the list has one entry per rank of the group: {group.size()}"
        raise OpValueError(operation, f"{object_gather_list!r}", rule, f"[None] * {group.size()}")
    found = _gather_objects(operation, obj, group, allow_pickle)
    if receives and object_gather_list is not None:
        object_gather_list[:] = found


def broadcast_object_list(
    object_list: list,
    src: int = 0,
    group: ProcessGroup | None = None,
    device: Any = None,
    *,
    allow_pickle: bool = False,
) -> None:
    """Replace the objects of the list on every rank by those of rank ``src``; the lists have one length.

    Objects, ``allow_pickle`` and errors are those of `all_gather_object`.
    """
    operation, group = f"broadcast_object_list(object_list, src={src})", group_of(group)
    if group.rank() < 0:
        return
    object_list[:] = _broadcast_object(operation, list(object_list), src, group, allow_pickle)


def scatter_object_list(
    scatter_object_output_list: list,
    scatter_object_input_list: list | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
    *,
    allow_pickle: bool = False,
) -> None:
    """Put the k-th object of rank ``src``'s list into the first entry of the output list on rank k of the group.

    Objects, ``allow_pickle`` and errors are those of `all_gather_object`.
    """
    operation, group = f"scatter_object_list(out, in, src={src})", group_of(group)
    if group.rank() < 0:
        return
    given = scatter_object_input_list
    if group.rank() == group.index(src, operation) and (given is None or len(given) != group.size()):
        rule = f"on rank src the input list has one object per rank of the group: {group.size()}"
        raise OpValueError(operation, f"{given!r}", rule, f"a list of {group.size()} objects")
    found = _broadcast_object(operation, given if given is None else list(given), src, group, allow_pickle)
    scatter_object_output_list[:1] = [found[group.rank()]]


def send_object_list(
    object_list: list,
    dst: int,
    group: ProcessGroup | None = None,
    device: Any = None,
    *,
    allow_pickle: bool = False,
) -> None:
    """Send the objects of a list to rank ``dst``, which calls `recv_object_list`.

    Objects, ``allow_pickle`` and errors are those of `all_gather_object`.
    """
    pair = pair_of(f"send_object_list(object_list, dst={dst})", dst, group, True)
    _broadcast_object(_describe_pair(pair), list(object_list), pair.ranks[0], pair, allow_pickle)


def recv_object_list(
    object_list: list,
    src: int,
    group: ProcessGroup | None = None,
    device: Any = None,
    *,
    allow_pickle: bool = False,
) -> int:
    """Replace the objects of the list by those that rank ``src`` sends, and return ``src``; see `send_object_list`."""
    pair = pair_of(f"recv_object_list(object_list, src={src})", src, group, False)
    object_list[:] = _broadcast_object(_describe_pair(pair), None, src, pair, allow_pickle)
    return src


def _describe_pair(pair: ProcessGroup) -> str:
    return f"send_object_list and recv_object_list from rank {pair.ranks[0]} to rank {pair.ranks[1]}"


def _broadcast_object(operation: str, obj: Any, src: int, group: ProcessGroup, allow_pickle: bool) -> Any:
    index = group.index(src, operation)
    static = (("src", index),)
    speaks = group.rank() == index
    silent = _Message(_PICKLED if allow_pickle else _PLAIN, np.zeros(0, np.uint8))
    parcel = _pack_object(obj, group, allow_pickle) if speaks else silent
    headers = _headers(operation, parcel, group)
    size, kind = map(int, headers[index])
    _largest_object_bytes(operation, headers[:, 0])
    (row,) = run(operation, bodies.broadcast, group, [parcel.pad_bytes(size)], static)
    if parcel.error is not None:
        raise parcel.error
    body = b"" if speaks else _body(operation, kind, np.asarray(row)[:size], index, group)
    _same_kind(operation, headers[:, 1], allow_pickle, group)
    return obj if speaks else _unpack_object(kind, body)
