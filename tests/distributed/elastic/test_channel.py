"""Doors between agents: only peers with the job's secret, and with TLS a certificate of its authority, get in."""

import asyncio
import contextlib
import shutil
import subprocess

import pytest

from sbpjax.distributed.elastic import channel
from sbpjax.distributed.elastic.channel import Channel, RefusedError
from tests.distributed.elastic.simulated import free_ports, run

KEY, OTHER = b"k" * 32, b"o" * 32


@contextlib.asynccontextmanager
async def serving(key, tls=None):
    """Serve an echo, and yield its address and what the server saw."""
    seen, (port,) = [], free_ports(1)

    async def serve(reader, writer):
        try:
            peer = await channel.accept(reader, writer, key)
            while True:
                message = await peer.receive()
                seen.append(message)
                peer.send(message | {"again": True})
        except (OSError, ValueError) as error:
            seen.append(error)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, ssl=tls)
    try:
        yield f"127.0.0.1:{port}", seen
    finally:
        server.close()


async def _echo(key, tls=(None, None), server_tls=None):
    async with serving(KEY, server_tls or tls[0]) as (address, seen):
        peer = await channel.connect(address, key, 2.0, 5.0, tls[1])
        try:
            for text in ("x", "long " * 200_000):
                peer.send({"t": "say", "text": text})
                assert await asyncio.wait_for(peer.receive(), 10) == {"t": "say", "text": text, "again": True}
        finally:
            peer.close()
        return seen


def test_messages_arrive_and_another_secret_is_refused():
    assert [message["t"] for message in run(_echo(KEY))[:2]] == ["say", "say"]
    with pytest.raises(RefusedError, match="may have another secret"):
        run(_echo(OTHER))


async def _forge(change):
    async with serving(KEY) as (address, seen):
        peer = await channel.connect(address, KEY, 2.0, 5.0)
        peer.send({"t": "one"})
        await peer.receive()
        change(peer)
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(peer.receive(), 10)
        return seen


def _replay(peer: Channel):
    peer._sent -= 1
    peer.send({"t": "one"})


def _flip(peer: Channel):
    write = peer._writer.write
    peer._writer.write = lambda data: write(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    peer.send({"t": "two"})


def _grow(peer: Channel):
    peer._writer.write((1 << 31).to_bytes(4, "little") + b"0" * 32)


@pytest.mark.parametrize("change", [_replay, _flip, _grow])
def test_frames_that_the_peer_did_not_sign_end_the_connection(change):
    seen = run(_forge(change))
    assert seen[0] == {"t": "one"} and isinstance(seen[1], RefusedError) and len(seen) == 2


async def _shout():
    async with serving(KEY) as (address, seen):
        reader, writer = await asyncio.open_connection(*channel.split_address(address))
        writer.write(b"GET / HTTP/1.1\r\nHost: somebody\r\nAccept: everything\r\n\r\n")
        assert (await reader.read()).startswith(channel.HELLO)
        writer.close()
        return seen


def test_a_stranger_is_refused():
    assert isinstance(run(_shout())[0], RefusedError)


def _openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Return the folder of two authorities, `one` and `two`, with certificates `one-host`, `one-old`, `two-host`."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates")
    folder = tmp_path_factory.mktemp("tls")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for authority in ("one", "two"):
        subject = ["-subj", f"/CN=job {authority}"]
        _openssl(folder, "req", "-x509", *new, "-keyout", f"{authority}.key", "-out", f"{authority}.pem", *subject)
        for name in ("host", "old") if authority == "one" else ("host",):
            name = f"{authority}-{name}"
            _openssl(folder, "req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
            signer = ["-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial"]
            days = "-1" if name == "one-old" else "1"
            _openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signer, "-days", days, "-out", f"{name}.pem")
    return folder


def _contexts(folder, name, authority):
    return channel.tls_contexts(*(str(folder / file) for file in (f"{name}.pem", f"{name}.key", f"{authority}.pem")))


def test_mutual_tls(certificates):
    tls = _contexts(certificates, "one-host", "one")
    assert [message["t"] for message in run(_echo(KEY, tls))[:2]] == ["say", "say"]
    with pytest.raises(RefusedError):  # a certificate is not enough
        run(_echo(OTHER, tls))


@pytest.mark.parametrize(
    "name, authority", [("two-host", "one"), ("two-host", "two"), ("one-old", "one"), (None, None)]
)
def test_peers_without_a_valid_certificate_of_the_job_are_refused(certificates, name, authority):
    server = _contexts(certificates, "one-host", "one")[0]
    client = None if name is None else _contexts(certificates, name, authority)[1]
    with pytest.raises(OSError):
        run(_echo(KEY, (None, client), server))


def test_a_server_with_another_certificate_is_refused(certificates):
    with pytest.raises(OSError):
        client = _contexts(certificates, "one-host", "one")[1]
        run(_echo(KEY, (None, client), _contexts(certificates, "two-host", "one")[0]))


def test_addresses():
    assert channel.split_address("[::1]:80") == ("::1", 80) and channel.join_address("::1", 80) == "[::1]:80"
    assert channel.split_address("host0:29400") == ("host0", 29400)
