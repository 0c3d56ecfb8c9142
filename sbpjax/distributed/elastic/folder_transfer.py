"""Transfer of small folders between the ranks of a run, over the agents' authenticated channel.

    rank 0    transfer.send("10.0.0.2:41013", "step_000000300.2/00000")
    rank 1    receives it in a thread; it is complete, in its own root, when `send` returns

Each rank listens at the address with which it reaches the first rank. The key of the channel is derived from that of
the run, so ranks of other epochs and jobs are refused. With TLS (``SBPJAX_JOB_TLS``), both ends show a certificate.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from sbpjax._core.runtime import processes
from sbpjax._core.serialization import signing

from . import channel as channels

TLS = "SBPJAX_JOB_TLS"  # certificate, key and authority of this host's agent
_FRAME_BYTES = 1 << 20
_REACH_S, _PATIENCE_S = 10.0, 60.0  # for an authenticated connection; for the peer to take a frame, or to answer
_NAME = re.compile(r"\w[\w.]*(/\w[\w.]*)*")  # below the folder


class FolderTransfer:
    """Sends folders to other ranks, and receives theirs.

    Args:
        root: where received folders are put.
        is_wanted: whether a folder of this name is taken.
        received: called with the name of a complete one, in the thread that receives.

    Attributes:
        address: where other ranks reach this one.
    """

    def __init__(self, root: Path, is_wanted: Callable[[str], bool], received: Callable[[str], None]) -> None:
        self._root, self._is_wanted, self._received = root, is_wanted, received
        self._key = signing.derive_key(processes.current().key, "folders")
        files = os.environ.get(TLS)
        self._tls = channels.tls_contexts(*files.split(os.pathsep)) if files else (None, None)
        self._listener = socket.create_server((_own_address(), 0))
        self.address = channels.join_address(*self._listener.getsockname()[:2])
        threading.Thread(target=lambda: asyncio.run(self._serve()), name="sbpjax-folders", daemon=True).start()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, sock=self._listener, ssl=self._tls[0])
        await server.serve_forever()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            peer = await channels.accept(reader, writer, self._key)
        except OSError:
            return  # a stranger
        why = None
        try:
            await self._receive(peer)
        except ConnectionError:
            return peer.close()
        except Exception as error:  # of a full memory, or a message that does not fit: the sender reports it
            why = f"{type(error).__name__}: {error}"
        peer.send({"t": "received", "why": why})
        with contextlib.suppress(ConnectionError):  # closed with bytes unread, the connection would lose the answer
            while True:
                await peer.receive_body()

    async def _receive(self, peer: channels.Channel) -> None:
        message = await peer.receive()
        name, files = message["name"], message["files"]
        is_safe = _NAME.fullmatch(name) and all(_NAME.fullmatch(file) and size >= 0 for file, size in files)
        if not is_safe or not self._is_wanted(name):
            raise ValueError(f"a folder {name!r} with {files!r}")
        partial = self._root / f"{name}.received"
        shutil.rmtree(partial, ignore_errors=True)
        try:
            for file, size in files:
                (partial / file).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                with open(partial / file, "wb", buffering=0) as sink:
                    while size:
                        async with asyncio.timeout(_PATIENCE_S):
                            body = await peer.receive_body()
                        size -= len(body)
                        if not body or size < 0 or sink.write(body) != len(body):
                            raise ValueError(f"{file} of {name} does not fit")
            shutil.rmtree(self._root / name, ignore_errors=True)
            partial.rename(self._root / name)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        self._received(name)

    def send(self, address: str, name: str) -> None:
        """Send the folder of this name to a rank, which has it when this returns.

        Raises:
            OSError: the rank is gone, or cannot take it.
        """
        asyncio.run(self._send(address, name))

    async def _send(self, address: str, name: str) -> None:
        folder = self._root / name
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = [[path.relative_to(folder).as_posix(), path.stat().st_size] for path in paths]
        peer = await channels.connect(address, self._key, _REACH_S, _REACH_S, self._tls[1])
        try:
            peer.send({"t": "folder", "name": name, "files": files})
            for path in paths:
                with open(path, "rb", buffering=0) as source:
                    while body := source.read(_FRAME_BYTES):
                        peer.send_body(body)
                        async with asyncio.timeout(_PATIENCE_S):
                            await peer.flush()
            async with asyncio.timeout(_PATIENCE_S):
                answer = await peer.receive()
        finally:
            peer.abort()  # all has been sent
        if answer.get("why") is not None:
            raise OSError(f"{address} answers {answer['why']}")


def _own_address() -> str:
    """Return the address of this host on the way to the first rank."""
    host, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT") or "1")
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(where)  # sends nothing
        return probe.getsockname()[0]
