"""Signed on-disk cache: compiled programs and plans in folders of this user, each file signed.

Reading a program is running it. So its file is believed only if this user's key signed it, under the requested name: a
rewritten file, one of another user, or one under another's name counts as absent. Folders are made with mode 700; if
another user could write there, nothing is kept or read, and one line is logged.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import pathlib
import tempfile

from sbpjax.errors import UnsafeFileError

from . import signing

log = logging.getLogger("sbpjax.cache")


@functools.lru_cache(maxsize=16)
def _key(folder: pathlib.Path) -> bytes | None:
    """Return the key for the files of a folder, None if the folder or the key is not to be trusted; logged once."""
    try:
        signing.private_folder(folder.parent)
        signing.private_folder(folder)
        return signing.private_key()
    except UnsafeFileError as error:
        signing.warn_once(f"compiled programs are not kept: {error}")
    except OSError as error:  # a read-only home
        log.info("programs are not kept: %s", error)
    return None


def read(folder: pathlib.Path, name: str) -> bytes | None:
    """Return the bytes that `write` put under a name, None if there are none, or cannot be."""
    key = _key(folder)
    if key is None:
        return None
    try:
        data = (folder / name).read_bytes()
    except FileNotFoundError:
        return None
    return signing.verify_signature(key, f"{folder.name}/{name}", data)


def write(folder: pathlib.Path, name: str, body: bytes) -> bool:
    """Put bytes under a name, all at once; return whether it was done."""
    key = _key(folder)
    if key is None:
        return False
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # removed since
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")  # of mode 600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(signing.sign(key, f"{folder.name}/{name}", body))
        os.replace(temporary, folder / name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return True
