"""File downloads: locked, resumed, checked, and moved into place when complete.

The received part of ``model.pth`` is stored in ``model.pth.part`` beside it, which one process at a time holds by a
lock of the system; another waits, and finds the file done. If the connection breaks, the rest is requested, by this
call a few times and by the next call too: as long as the server names the version of its file (``ETag``), or the caller
knows its hash. Otherwise the received part could be of another file, and is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sbpjax.errors import HubError

ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
ENV_OFFLINE = "SBPJAX_HUB_OFFLINE"
CHUNK_BYTES = 128 * 1024
TIMEOUT_S = 30.0  # a server that sends nothing for so long is given up
ATTEMPTS = 4  # of which each goes on where the one before broke off
PAUSE_S = 0.5  # before the second attempt; twice as long before each further one
TOKEN_HOSTS = ("github.com", "api.github.com", "codeload.github.com")


class _ConnectionLost(Exception):
    """A connection ended before the file did."""


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download a file.

    Args:
        url: where it is; ``file://`` too.
        dst: the path it gets, when it is complete.
        hash_prefix: the beginning of its SHA-256.
        progress: show progress: a bar in a terminal, a line elsewhere.

    Raises:
        HubError: it cannot be reached, ends early, its hash is another, or ``SBPJAX_HUB_OFFLINE`` forbids it.
    """
    dst = os.path.abspath(os.path.expanduser(dst))
    if offline() and urlparse(url).scheme != "file":
        rule = f"with {ENV_OFFLINE} set nothing is downloaded, and files come from the cache alone"
        fix = f"put the file at {dst}, or unset {ENV_OFFLINE}"
        raise HubError(f"downloading {url}", f"{ENV_OFFLINE}={os.environ[ENV_OFFLINE]}, and no {dst}", rule, fix)
    os.makedirs(os.path.dirname(dst), exist_ok=True)
    before = _identity(dst)
    with _open_locked(dst + ".part") as part:
        now = _identity(dst)
        if now is not None and now != before:
            _remove(dst + ".part")
            return  # another process had it meanwhile
        if progress:
            print(f"Downloading {url} to {dst}", file=sys.stderr)
        try:
            _complete(url, dst, part, hash_prefix, progress)
            _check_hash(url, dst, part, hash_prefix)
            os.replace(dst + ".part", dst)
        except BaseException:
            if not (_version(dst) or hash_prefix) or part.tell() == 0:
                _remove(dst + ".part")
            raise
        finally:
            if not os.path.exists(dst + ".part"):
                _remove(dst + ".part.version")


def offline() -> bool:
    """Return whether the environment forbids downloads."""
    return os.environ.get(ENV_OFFLINE, "0") not in ("", "0")


def _identity(path: str) -> tuple[int, int] | None:
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(path)
        return found.st_ino, found.st_mtime_ns
    return None


@contextlib.contextmanager
def _open_locked(path: str) -> Iterator[BinaryIO]:
    """Open a file at its end, alone: wait while another process has it."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # the system gives it back when a process is killed
            with contextlib.suppress(FileNotFoundError):
                if os.fstat(file.fileno()).st_ino == os.stat(path).st_ino:  # not one that was moved away meanwhile
                    file.seek(0, os.SEEK_END)
                    yield file
                    return


def _complete(url: str, dst: str, part: BinaryIO, hash_prefix: str | None, progress: bool) -> None:
    """Download the missing part of a file, in a few attempts."""
    for attempt in range(ATTEMPTS):
        version = _version(dst)
        if not (version or hash_prefix):
            _restart(part)
        size = part.tell()
        try:
            _append(url, dst, part, version, progress)
            return
        except _ConnectionLost as broken:
            resumable = bool(_version(dst) or hash_prefix)
            came_on = part.tell() > size
            if not resumable or attempt == ATTEMPTS - 1 or not came_on:
                seen = f"{broken}; {part.tell()} bytes stay, and the next call goes on" if resumable else str(broken)
                raise download_error(url, dst, seen) from broken
            time.sleep(PAUSE_S * 2**attempt)


def _append(url: str, dst: str, part: BinaryIO, version: str | None, progress: bool) -> None:
    size = part.tell()
    headers = {"Range": f"bytes={size}-"} if size else {}
    if size and version:
        headers["If-Range"] = version
    with _open_url(url, dst, headers) as source:
        if size and getattr(source, "status", 200) != 206:
            size = _restart(part)
        total = _total(source, size)
        if size and total is None:  # a part of something else
            raise _ConnectionLost(f"an answer without a place: {source.headers.get('Content-Range')!r}")
        _keep_version(dst, source.headers.get("ETag"))
        bar = Bar(total, size) if progress else None
        while chunk := _chunk(source):
            part.write(chunk)
            if bar is not None:
                bar.move(part.tell())
        part.flush()
        if bar is not None:
            bar.end()
    if total is not None and part.tell() < total:
        raise _ConnectionLost(f"{part.tell()} bytes of {total}")
    if total is not None and part.tell() > total:
        _restart(part)
        raise download_error(url, dst, f"more than the {total} bytes that were announced")


def _total(source: Any, size: int) -> int | None:
    """Return the number of bytes of the whole file, if the server sends it."""
    if size:
        unit, _, rest = (source.headers.get("Content-Range") or "").partition(" ")
        place, _, total = rest.partition("/")
        starts_there = unit == "bytes" and place.partition("-")[0] == str(size)
        return int(total) if starts_there and total.isdecimal() else None
    length = source.headers.get("Content-Length")
    return int(length) if length is not None and length.isdecimal() else None


def _restart(part: BinaryIO) -> int:
    part.seek(0)
    part.truncate()
    return 0


def _check_hash(url: str, dst: str, part: BinaryIO, hash_prefix: str | None) -> None:
    if not hash_prefix:
        return
    part.seek(0)
    digest = hashlib.sha256()
    while chunk := part.read(CHUNK_BYTES):
        digest.update(chunk)
    if not digest.hexdigest().startswith(hash_prefix):
        size = part.tell()
        _restart(part)  # not to be gone on with
        rule = f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")'
        raise HubError(
            f"downloading {url}", f"{size} bytes", rule, "try again; if it stays so, check the hash with its author"
        )


def _version(dst: str) -> str | None:
    with contextlib.suppress(OSError), open(dst + ".part.version", encoding="utf-8") as file:
        return file.read()
    return None


def _keep_version(dst: str, version: str | None) -> None:
    if version and not version.startswith("W/"):  # a weak one may be the same for other bytes
        with open(dst + ".part.version", "w", encoding="utf-8") as file:
            file.write(version)
    else:
        _remove(dst + ".part.version")


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class Bar:
    """A line that shows how much has come; written anew ten times a second, and in terminals alone."""

    def __init__(self, total: int | None, start: int) -> None:
        self.total, self.start, self.began, self.last = total, start, time.monotonic(), 0.0
        self.shown = sys.stderr.isatty()

    def move(self, done: int) -> None:
        """Show how many bytes have come."""
        now = time.monotonic()
        if self.shown and now - self.last > 0.1:
            self.last = now
            sys.stderr.write("\r" + self.text(done, now - self.began))
            sys.stderr.flush()

    def text(self, done: int, seconds: float) -> str:
        """Return the line."""
        speed = (done - self.start) / max(seconds, 1e-3) / 1e6
        if self.total is None:
            return f"{done / 1e6:.1f} MB, {speed:.1f} MB/s"
        full = int(30 * done / max(self.total, 1))
        return f"[{'#' * full:<30}] {done / 1e6:.1f} of {self.total / 1e6:.1f} MB, {speed:.1f} MB/s"

    def end(self) -> None:
        """Leave the line."""
        if self.shown:
            sys.stderr.write("\n")


class _Redirects(HTTPRedirectHandler):
    """Follows redirects: from https to https alone, and with the token only to the hosts that it is for."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if urlparse(req.full_url).scheme == "https" and urlparse(newurl).scheme != "https":
            rule = "a download over https stays on https"
            raise HubError(f"downloading {req.full_url}", f"a redirect to {newurl}", rule, "check the URL")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        return None if request is None else _with_token(request)


def _with_token(request: Request) -> Request:
    """Give a request GitHub's token, if it is for GitHub and over https; redirects do not carry it on."""
    token, to = os.environ.get(ENV_GITHUB_TOKEN), urlparse(request.full_url)
    if token and to.scheme == "https" and to.hostname in TOKEN_HOSTS:
        request.add_unredirected_header("Authorization", f"token {token}")
    return request


def _open_url(url: str, dst: str, headers: dict[str, str]) -> Any:
    try:
        request = _with_token(Request(url, headers={"User-Agent": "sbpjax.hub", **headers}))
        return build_opener(_Redirects).open(request, timeout=TIMEOUT_S)
    except HTTPError as error:
        if error.code == 416 and headers:  # there is nothing after the received part: it is of something else
            return _open_url(url, dst, {})
        reason = f"the server answered {error.code} {error.reason}"
        raise HubError(f"downloading {url}", reason, "the file must be there", "check the URL") from error
    except (URLError, OSError, HTTPException) as error:
        raise download_error(url, dst, f"no connection: {getattr(error, 'reason', error)}") from error


def _chunk(source: Any) -> bytes:
    try:
        return source.read(CHUNK_BYTES)
    except (OSError, HTTPException) as error:
        raise _ConnectionLost(f"the connection broke: {error}") from error


def download_error(url: str, dst: str, seen: str) -> HubError:
    """Return the error of a server that did not give a file."""
    fix = f"download it elsewhere and put it at {dst}, or pass a file:// URL"
    rule = f"this needs a connection to that host, which answers within {TIMEOUT_S:g} s"
    return HubError(f"downloading {url}", seen, rule, fix)
