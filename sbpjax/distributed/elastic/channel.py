"""Authenticated messages between agents: JSON in frames, signed with the secret of the job, over TCP or mutual TLS.

    server → client     sbpjax-elastic-1, and 16 random bytes
    client → server     16 random bytes, and a signature of both
    server → client     a signature of both
    either → the other  length, signature, JSON

Each frame's signature covers its direction and its number on the connection, so a frame cannot be replayed, dropped
or reordered unnoticed. A peer without the secret gets 5 seconds and no answer. With TLS, both sides show a certificate
that the job's authority signed; the secret is checked as well, so a certificate of another job is not enough.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import socket
import ssl
from typing import Any

HELLO = b"sbpjax-elastic-1\n"
_NONCE_BYTES, _TAG_BYTES, _LENGTH_BYTES = 16, 32, 4
MAX_MESSAGE_BYTES = 64 << 20  # an epoch of a hundred thousand hosts
_MOST_UNSENT_BYTES = 256 << 20  # to a peer that does not read
PATIENCE_S = 5.0


class RefusedError(ConnectionError):
    """The peer does not know the secret, or sent a frame that it did not sign."""


class Channel:
    """A connection to an authenticated agent.

    Args:
        reader: its incoming bytes.
        writer: its outgoing bytes.
        key: of this connection.
        is_server: whether this end accepted the connection.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes, is_server: bool) -> None:
        self._reader, self._writer = reader, writer
        self._keys = [hmac.digest(key, way, "sha256") for way in (b"to client", b"to server")]
        if not is_server:
            self._keys.reverse()  # the first signs what this end sends
        self._sent = self._received = 0
        self.is_open = True

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; a connection that broke, or whose peer does not read, is closed."""
        self.send_body(encode_message(message))

    def send_body(self, body: bytes) -> None:
        """Send an encoded message; see `encode_message`."""
        if not self.is_open:
            return
        tag = _sign_frame(self._keys[0], self._sent, body)
        self._sent += 1
        self._writer.write(b"".join((len(body).to_bytes(_LENGTH_BYTES, "little"), tag, body)))
        if self._writer.transport.get_write_buffer_size() > _MOST_UNSENT_BYTES:
            self.close()

    async def receive(self) -> dict[str, Any]:
        """Return the next message.

        Raises:
            RefusedError: the peer did not sign it.
            ConnectionError: the connection ended.
            ValueError: it is none.
        """
        return decode_message(await self.receive_body())

    async def receive_body(self) -> bytes:
        """Return the bytes of the next message, as `send_body` takes them; errors of the connection as of `receive`."""
        try:
            head = await self._reader.readexactly(_LENGTH_BYTES + _TAG_BYTES)
            length = int.from_bytes(head[:_LENGTH_BYTES], "little")
            if length > MAX_MESSAGE_BYTES:
                raise RefusedError(f"a message of {length} bytes")
            body = await self._reader.readexactly(length)
        except RefusedError:
            self.close()
            raise
        except (asyncio.IncompleteReadError, OSError) as error:
            self.close()
            raise ConnectionError(str(error) or "the connection ended") from None
        if not hmac.compare_digest(head[_LENGTH_BYTES:], _sign_frame(self._keys[1], self._received, body)):
            self.close()
            raise RefusedError("a message that the peer did not sign")
        self._received += 1
        return body

    def abort(self) -> None:
        """End the connection at once, without what is not sent yet."""
        self.is_open = False
        self._writer.transport.abort()

    async def flush(self) -> None:
        """Wait until the kernel has taken the messages."""
        with contextlib.suppress(OSError):
            await self._writer.drain()

    def close(self) -> None:
        """End the connection."""
        if self.is_open:
            self.is_open = False
            self._writer.close()


def encode_message(message: dict[str, Any]) -> bytes:
    """Return the bytes of a message, to be sent to several peers."""
    return json.dumps(message, separators=(",", ":")).encode()


def decode_message(body: bytes) -> dict[str, Any]:
    """Return the message of its bytes.

    Raises:
        ValueError: they are none.
    """
    message = json.loads(body)
    if type(message) is not dict or type(message.get("t")) is not str:
        raise ValueError(f"no message: {body[:100]!r}")
    return message


def _sign_frame(key: bytes, number: int, body: bytes) -> bytes:
    return hmac.digest(key, number.to_bytes(8, "little") + body, "sha256")


async def connect(
    address: str, key: bytes, reach_s: float, answer_s: float, tls: ssl.SSLContext | None = None
) -> Channel:
    """Connect to an agent and authenticate both ends.

    Args:
        address: ``host:port``.
        key: of the job.
        reach_s: how long to wait for the connection.
        answer_s: how long to wait for the peer's signature, which may be busy.
        tls: of `client_tls`.

    Raises:
        RefusedError: the peer has another secret.
        OSError: it does not answer in time, or its certificate is refused.
    """
    host, port = split_address(address)
    async with asyncio.timeout(reach_s):
        reader, writer = await asyncio.open_connection(host, port)
    async with asyncio.timeout(answer_s):
        try:
            if tls is not None:
                await writer.start_tls(tls)
            _send_at_once(writer)
            hello = await reader.readexactly(len(HELLO) + _NONCE_BYTES)
            if not hello.startswith(HELLO):
                raise RefusedError("no agent answers there")
            theirs, mine = hello[len(HELLO) :], secrets.token_bytes(_NONCE_BYTES)
            writer.write(mine + hmac.digest(key, b"client" + theirs + mine, "sha256"))
            answer = await reader.readexactly(_TAG_BYTES)
            if not hmac.compare_digest(answer, hmac.digest(key, b"server" + theirs + mine, "sha256")):
                raise RefusedError("the agent there lacks this job's secret")
        except asyncio.IncompleteReadError:
            writer.transport.abort()
            raise RefusedError("the agent there closed the connection: it may have another secret") from None
        except BaseException:
            writer.transport.abort()  # closed in order, a connection of TLS would outlive the loop
            raise
    return Channel(reader, writer, hmac.digest(key, b"channel" + theirs + mine, "sha256"), False)


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> Channel:
    """Authenticate both ends of an accepted connection.

    Raises:
        RefusedError: the peer has another secret.
        OSError: it is silent, or gone.
    """
    mine = secrets.token_bytes(_NONCE_BYTES)
    try:
        async with asyncio.timeout(PATIENCE_S):
            _send_at_once(writer)
            writer.write(HELLO + mine)
            answer = await reader.readexactly(_NONCE_BYTES + _TAG_BYTES)
        theirs, tag = answer[:_NONCE_BYTES], answer[_NONCE_BYTES:]
        if not hmac.compare_digest(tag, hmac.digest(key, b"client" + mine + theirs, "sha256")):
            raise RefusedError("its signature is not of this job's secret")
    except asyncio.IncompleteReadError:
        writer.close()
        raise RefusedError("it ended in the middle") from None
    except BaseException:
        writer.close()
        raise
    writer.write(hmac.digest(key, b"server" + mine + theirs, "sha256"))
    return Channel(reader, writer, hmac.digest(key, b"channel" + mine + theirs, "sha256"), True)


def _send_at_once(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def split_address(address: str) -> tuple[str, int]:
    """Return the host and the port of ``host:port`` or ``[address]:port``."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def join_address(host: str, port: int) -> str:
    """Return ``host:port``."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def tls_contexts(certificate: str, key: str, authority: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS settings of an accepting and of a connecting agent; both demand a certificate of the authority.

    Args:
        certificate: a PEM file.
        key: the PEM file of its private key.
        authority: a PEM file of the certificates that sign those of this job's agents.

    Raises:
        OSError, ssl.SSLError: a file cannot be read, or key and certificate do not belong together.
    """
    made = []
    for side in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = ssl.SSLContext(side)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # hosts come and go: the authority is the job's, whatever the address
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
        made.append(context)
    return made[0], made[1]
