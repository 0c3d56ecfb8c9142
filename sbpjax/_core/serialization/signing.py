"""HMAC signatures over bytes, their keys, and folders that only this user can write.

    data = sign(key, "program 4f2a…", body)         # 32 bytes of HMAC-SHA256, then the body
    body = verified(key, "program 4f2a…", data)     # or SignatureError

The *context* identifies the bytes. It is part of the signature, so a message of rank 1 at meeting 3 is not taken for
one of rank 2 at meeting 4, and a cached program is not taken for another.

There are two keys. The key of the *user* is stored in ``~/.config/sbpjax/key``, made on first use, readable for the
user alone; it signs the files of this user's programs. The key of a *job* is known to its ranks: `job_key` documents
its sources. ``docs/explanation/security.md`` explains the protection of each.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import logging
import os
import pathlib
import secrets
import stat

from sbpjax.errors import SignatureError, UnsafeFileError, page

TAG_BYTES = 32
SECRET = "SBPJAX_JOB_SECRET"
SECRET_FILE = "SBPJAX_JOB_SECRET_FILE"
_LEAST_SECRET = 16  # characters
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
# A scheduler's name of the job: jobs of one user on one port do not take each other for themselves.
_JOB_NAMES = ("SLURM_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")


def sign(key: bytes, context: str, body: bytes) -> bytes:
    """Return the signature of a body in its context, followed by the body."""
    return _tag(key, context, body) + body


def verify_signature(key: bytes, context: str, data: bytes) -> bytes:
    """Return the body of signed bytes.

    Raises:
        SignatureError: the key did not sign these bytes in this context.
    """
    tag, body = data[:TAG_BYTES], data[TAG_BYTES:]
    if not hmac.compare_digest(tag, _tag(key, context, body)):
        raise SignatureError(
            f"reading {context}",
            f"{len(data)} bytes whose signature is not of this key",
            "only data that a holder of the key signed for this place are read",
            f"remove it if a program of yours did not write it; see {page('explanation/security.md')}",
        )
    return body


def derive_key(key: bytes, *names: str) -> bytes:
    """Return a key of its own for a purpose."""
    return hmac.digest(key, _frame_context("\0".join(("derived", *names))), "sha256")


def _tag(key: bytes, context: str, body: bytes) -> bytes:
    made = hmac.new(key, _frame_context(context), "sha256")
    made.update(body)
    return made.digest()


def _frame_context(context: str) -> bytes:
    text = context.encode("utf-8", "surrogatepass")
    return len(text).to_bytes(8, "little") + text


# --------------------------------------------------------------------------------------------------- files and folders


def private_folder(path: str | os.PathLike) -> pathlib.Path:
    """Return a folder that only this user can write, made with mode 700 if it is not there."""
    folder = pathlib.Path(path)
    make_folder(folder)
    for found in (os.lstat(folder), os.stat(folder)):  # a link, and its target
        reason = _foreign(found)
        if reason is None and not stat.S_ISLNK(found.st_mode) and found.st_mode & _OTHERS_MAY_WRITE:
            reason = f"others may write to it (mode {stat.S_IMODE(found.st_mode):o})"
        if reason is None and not (stat.S_ISLNK(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            reason = "it is no folder"
        if reason is not None:
            raise UnsafeFileError(
                f"{folder} is not used: {reason}; remove it, or choose a folder of your own (mode 700)"
            )
    return folder


def make_folder(path: str | os.PathLike) -> None:
    """Make a folder, and those above it that are missing, with mode 700 under any umask; leave existing ones."""
    folder = pathlib.Path(path)
    if not os.path.lexists(folder):
        if folder.parent != folder:
            make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)


@functools.lru_cache(maxsize=64)
def warn_once(text: str) -> None:
    """Log one line, also if several caches share the folder."""
    logging.getLogger("sbpjax").warning(text)


def _foreign(found: os.stat_result) -> str | None:
    """Return why a file is not this user's; None if it is, and where the system has no owners."""
    if not hasattr(os, "geteuid") or found.st_uid == os.geteuid():
        return None
    return f"user {found.st_uid} owns it, and this is user {os.geteuid()}"


def read_private_file(path: str | os.PathLike, most: int = 4096) -> bytes:
    """Return the bytes of a file that only this user can read and write."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnsafeFileError(f"{path} is not used: {error.strerror}; it has to be a plain file of mode 600") from None
    try:
        found = os.fstat(handle)
        reason = _foreign(found)
        if reason is None and not stat.S_ISREG(found.st_mode):
            reason = "it is no plain file"
        if reason is None and hasattr(os, "geteuid") and stat.S_IMODE(found.st_mode) & 0o077:
            reason = f"others may read or write it (mode {stat.S_IMODE(found.st_mode):o})"
        if reason is None and found.st_size > most:
            reason = f"it has {found.st_size} bytes"
        if reason is not None:
            raise UnsafeFileError(
                f"{path} is not used: {reason}; remove it, or give it mode 600 if no other user wrote it"
            )
        return os.read(handle, most)
    finally:
        os.close(handle)


# ---------------------------------------------------------------------------------------------------------------- keys


def private_key(path: str | os.PathLike | None = None) -> bytes:
    """Return this user's key, made on first use.

    Args:
        path: its file; ``$XDG_CONFIG_HOME/sbpjax/key`` or ``~/.config/sbpjax/key`` by default.

    Raises:
        UnsafeFileError: the file or its folder is another user's, or open to others.
        OSError: it cannot be made.
    """
    return _key_in(os.fspath(_default_path() if path is None else path))


def _default_path() -> str:
    root = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(root, "sbpjax", "key")


@functools.lru_cache(maxsize=8)
def _key_in(path: str) -> bytes:
    folder = private_folder(os.path.dirname(os.path.abspath(path)))
    try:
        key = read_private_file(path)
    except FileNotFoundError:
        _make_key(folder, path)
        key = read_private_file(path)
    if len(key) != TAG_BYTES:
        raise UnsafeFileError(f"{path} is not used: a key has {TAG_BYTES} bytes, this file {len(key)}; remove it")
    return key


def _make_key(folder: pathlib.Path, path: str) -> None:
    """Write a whole new key, unless another process was first: a link is made at once, and only where none is."""
    fresh = folder / f".{secrets.token_hex(8)}"
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(secrets.token_bytes(TAG_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        os.unlink(fresh)


def job_key() -> bytes:
    """Return the key that the ranks of this job share.

    It is derived from ``SBPJAX_JOB_SECRET``, which the launcher sets, else from the file that
    ``SBPJAX_JOB_SECRET_FILE`` names, else from this user's key and the scheduler's name of the job: processes of one
    user that share a home directory agree without further ado, and others are refused.

    Raises:
        SignatureError: the secret is too short.
        UnsafeFileError: the secret's file, or the user's key, is open to others.
        OSError: neither can be read, nor a key made.
    """
    secret, source = os.environ.get(SECRET, "").encode(), SECRET
    if not secret and os.environ.get(SECRET_FILE):
        source = SECRET_FILE
        secret = read_private_file(os.environ[SECRET_FILE]).strip()
    if not secret and not os.environ.get(SECRET_FILE):
        names = [f"{name}={os.environ[name]}" for name in _JOB_NAMES if os.environ.get(name)]
        return derive_key(private_key(), "job", *names)
    if len(secret) < _LEAST_SECRET:
        rule = f"a secret has at least {_LEAST_SECRET} characters that no one can guess"
        fix = f'export {SECRET}="$(openssl rand -hex 32)", the same on every rank'
        raise SignatureError("the secret of this job", f"{source} with {len(secret)}", rule, fix)
    return derive_key(secret, "job")
