"""Wire format of the rendezvous messages, with their authentication and validation.

    rank 0 → rank r     sbpjax-roll-call-3, and 16 random bytes: the challenge
    rank r → rank 0     signed: rank, size, host, versions, and 16 random bytes of its own
    rank 0 → rank r     signed: the hosts of all and the run's number, or the error that all raise; nothing if rejected

A signature covers the random bytes of the other side, so replayed messages are rejected. Every message but the first
begins with its length in four bytes. The length of a message is checked before it is kept, its signature before it is
decoded, and each of its fields before it is used.
"""

from __future__ import annotations

import platform
import socket
from typing import Any

import jax
import jaxlib
import numpy

from sbpjax._core.serialization import encoding, signing
from sbpjax.errors import EncodingError, SignatureError

HELLO = b"sbpjax-roll-call-3\n"
NONCE_BYTES = 16
MAX_MESSAGE_BYTES = 8192
MAX_ANSWER_BYTES = 64 << 20  # the hosts of a hundred thousand ranks
_LENGTH_BYTES = 4
_FIELDS: dict[str, type] = {"rank": int, "size": int, "host": str, "versions": dict, "nonce": bytes}
_MOST_CHARACTERS = 300


def versions() -> dict[str, str]:
    """Return the versions that must be equal on all processes."""
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": numpy.__version__,
    }


def host() -> str:
    """Return a name of this machine that no other machine of the run has."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{socket.gethostname()}/{file.read().strip()}"
    except OSError:
        return socket.gethostname()


def frame_bytes(body: bytes) -> bytes:
    """Return bytes with their length before them."""
    return len(body).to_bytes(_LENGTH_BYTES, "little") + body


def unframe_bytes(data: bytes, most: int) -> bytes | None:
    """Return the bytes of a frame, None while it is not whole.

    Raises:
        EncodingError: it is longer than ``most``.
    """
    if len(data) < _LENGTH_BYTES:
        return None
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    if length > most or len(data) > _LENGTH_BYTES + length:
        raise EncodingError(f"a message of {max(length, len(data))} bytes, where at most {most} come")
    return bytes(data[_LENGTH_BYTES:]) if len(data) == _LENGTH_BYTES + length else None


def sign_value(key: bytes, which: str, nonce: bytes, value: Any) -> bytes:
    """Return a frame of a value that is signed for the holder of a nonce."""
    return sign_bytes(key, which, nonce, encoding.encode(value))


def sign_bytes(key: bytes, which: str, nonce: bytes, encoded: bytes) -> bytes:
    """Return a frame of an encoded value that is signed for the holder of a nonce."""
    return frame_bytes(signing.sign(key, f"roll call, {which} {nonce.hex()}", encoded))


def open_frame(key: bytes, which: str, nonce: bytes, body: bytes) -> Any:
    """Return the value of a frame's bytes.

    Raises:
        SignatureError: the bytes are not of this job, or meant for another receiver.
        EncodingError: the bytes are no encoded value.
    """
    return encoding.decode(signing.verify_signature(key, f"roll call, {which} {nonce.hex()}", body))


def validate_message(key: bytes, nonce: bytes, body: bytes) -> tuple[dict[str, Any] | None, str]:
    """Return the validated message of a rank, or None and the reason of its rejection."""
    try:
        message = open_frame(key, "rank", nonce, body)
    except SignatureError:
        return None, "its signature is not of this job's secret (another job on this port?)"
    except EncodingError:
        return None, "it sent no message of the roll call"
    if type(message) is not dict or message.keys() != _FIELDS.keys():
        return None, "its message has other fields"
    if any(type(message[name]) is not kind for name, kind in _FIELDS.items()):
        return None, "its message has fields of other types"
    texts = [message["host"], *message["versions"], *message["versions"].values()]
    if any(type(text) is not str or len(text) > _MOST_CHARACTERS for text in texts) or len(texts) > 32:
        return None, "its message has texts that are none, or too long"
    return (message, "") if len(message["nonce"]) == NONCE_BYTES else (None, "its random bytes are too few")
