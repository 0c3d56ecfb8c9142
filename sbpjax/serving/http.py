"""Limits of the HTTP servers: idle connections, unread answers, number of connections, bearer tokens.

uvicorn closes a connection that is idle after an answer, and nothing else: a client that connects and stays silent, or
that never reads its answer, keeps its connection for ever, and ``limit_concurrency`` rejects all clients once there are
enough of them. `limited_protocol` gives uvicorn's own protocol three limits:

* a request's headers arrive within ``header_s`` of the connection or of the answer before;
* a client that stops reading its answer for ``write_s`` is disconnected;
* beyond ``max_connections`` the connection that has waited longest for a request is closed, then the one whose request
  body has been incomplete for longest. Connections with a whole request stay.
"""

from __future__ import annotations

import asyncio
import hmac
import resource
from collections.abc import Awaitable, Callable
from typing import Any

_DRAINED_BYTES = 2**27


class RequestError(Exception):
    """Request answered by an error: its status, and the reason."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status


async def read_body(receive: Callable[[], Awaitable[Any]], most_bytes: int, read_s: float) -> bytes:
    """Return the body of a request.

    Args:
        receive: the ASGI callable of the request.
        most_bytes: the largest body.
        read_s: seconds in which it arrives.

    Raises:
        RequestError: 413 for a larger body, 408 for a slower one, 499 if the client left, who reads no answer.
    """
    body, size, more = bytearray(), 0, True
    try:
        async with asyncio.timeout(read_s):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestError(499, "the client left")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                # The rest of a body that is too large is read and dropped: a client that still sends would see its
                # connection reset instead of the answer.
                if size <= most_bytes:
                    body += part
                elif size > most_bytes + _DRAINED_BYTES:
                    break
    except TimeoutError:
        raise RequestError(408, f"a request arrives within {read_s:g} s") from None
    if size > most_bytes:
        raise RequestError(413, f"a request has at most {most_bytes} bytes")
    return bytes(body)


def limited_protocol(*, header_s: float = 10.0, write_s: float = 60.0, max_connections: int = 2048) -> type:
    """Return uvicorn's HTTP/1.1 protocol with limits, for ``uvicorn.Config(http=...)``.

    Args:
        header_s: seconds from the connection, or from the last answer, to the end of a request's headers.
        write_s: seconds that a client may leave an answer unread.
        max_connections: the maximum number of open connections; see this module's docstring.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol  # of the extra `serve`

    class LimitedProtocol(H11Protocol):
        transport: Any

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._header_timer = self._write_timer = None
            self._await_headers()
            self._close_surplus()

        def _await_headers(self) -> None:
            self._stop(self._header_timer)
            self._since = self.loop.time()
            self._header_timer = self.loop.call_later(header_s, self._end_of_headers, self.cycle)

        def _end_of_headers(self, cycle: Any) -> None:
            if self.cycle is cycle:  # no request has begun since
                self.transport.abort()

        def _close_surplus(self) -> None:
            others = self.connections - {self}
            if len(others) < max_connections:
                return
            waiting = [c for c in others if isinstance(c, LimitedProtocol) and c._rank < 2]
            if waiting:
                min(waiting, key=lambda c: (c._rank, c._since)).transport.abort()
            else:
                self.transport.abort()

        @property
        def _rank(self) -> int:
            """Return 0 without a request, 1 with an incomplete one, 2 with a whole one."""
            if self.cycle is None or self.cycle.response_complete:
                return 0
            return 1 if self.cycle.more_body else 2

        def on_response_complete(self) -> None:
            self._await_headers()
            super().on_response_complete()  # may begin the next request of a pipeline

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stop(self._write_timer)
            self._write_timer = self.loop.call_later(write_s, self.transport.abort)

        def resume_writing(self) -> None:
            self._stop(self._write_timer)
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop(self._header_timer)
            self._stop(self._write_timer)
            super().connection_lost(exc)

        @staticmethod
        def _stop(timer: Any) -> None:
            if timer is not None:
                timer.cancel()

    return LimitedProtocol


def raise_file_limit(wanted: int) -> int:
    """Raise the process's limit of open files towards ``wanted``, and return how many connections fit into it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    files = wanted if soft == resource.RLIM_INFINITY else min(soft, wanted)
    return max(files - 128, files // 2)  # the rest is for the program's own files


def has_token(authorization: str, token: str) -> bool:
    """Return whether the header ``Authorization`` is ``Bearer <token>``; the scheme's case does not matter."""
    scheme, _, given = authorization.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
