"""The roll call: who is missing, who does not fit; each rank a thread of this process."""

import contextlib
import logging
import pickle
import random
import socket
import struct
import threading
import time

import pytest

from sbpjax import errors
from sbpjax._core.serialization import encoding, signing
from sbpjax.distributed.rendezvous import client, messages, server

KEY, OTHER = b"k" * 32, b"o" * 32


def call(size, ranks, timeout_s=10.0, sizes=None, keys=None, address=None):
    """Hold a roll call and return what each rank gets: hosts and key, or an error."""
    address = address or f"127.0.0.1:{client.free_port()}"
    found = {}

    def one(i, rank):
        try:
            found[i] = client.rendezvous(address, rank, (sizes or {}).get(i, size), timeout_s, (keys or {}).get(i, KEY))
        except errors.SbpjaxError as error:
            found[i] = error

    threads = [threading.Thread(target=one, args=(i, r)) for i, r in enumerate(ranks)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
        assert not t.is_alive()
    return [found[i] for i in range(len(ranks))]


def test_all_present():
    found, again = call(3, [2, 0, 1]), call(3, [0, 1, 2])
    assert found[0] == found[1] == found[2] and len(found[0].hosts) == 3 and len(set(found[0].hosts)) == 1
    assert repr(found[0].key) not in repr(found[0])  # a secret is not for logs
    assert len(found[0].key) == 32 and found[0].key not in (KEY, again[0].key)  # each run has its own


def test_missing_ranks_are_named_on_all():
    for error in call(4, [0, 2], timeout_s=0.5):
        assert isinstance(error, errors.LostRankError) and "ranks [1, 3] of 4 did not come within 0.5 s" in str(error)
        assert "\n  fix:  " in str(error)


def test_missing_coordinator():
    (error,) = call(2, [1], timeout_s=0.5)
    assert isinstance(error, errors.LostRankError) and "rank 0 did not answer within 0.5 s" in str(error)


def test_one_rank_twice():
    for error in call(3, [0, 1, 1]):
        assert isinstance(error, errors.AgreementError) and "two processes claim to be rank 1" in str(error)


def test_other_number_of_processes():
    for error in call(2, [0, 1], sizes={1: 3}):
        assert isinstance(error, errors.AgreementError) and "for 3 processes, rank 0 for 2" in str(error)


def test_other_versions(monkeypatch):
    own = messages.versions()
    monkeypatch.setattr(
        messages, "versions", lambda: own if threading.current_thread() is threads[0] else own | {"jax": "0.1"}
    )
    port, found = client.free_port(), {}

    def one(rank):
        try:
            client.rendezvous(f"127.0.0.1:{port}", rank, 2, 10.0, KEY)
        except errors.AgreementError as error:
            found[rank] = str(error)

    threads = [threading.Thread(target=one, args=(r,)) for r in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert all(f"jax {own['jax']} on rank 0, 0.1 on rank 1" in found[r] for r in range(2))


def test_port_in_use():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with pytest.raises(errors.DistributedError, match="port") as raised:
            client.rendezvous(f"127.0.0.1:{holder.getsockname()[1]}", 0, 2, 1.0, KEY)
        assert "--port 0" in str(raised.value)


def test_something_else_answers():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        other.settimeout(1)

        def answer():
            try:
                while True:
                    connection, _ = other.accept()
                    connection.recv(65536)
                    connection.sendall(b"220 mail ready\n")
                    connection.close()
            except OSError:
                pass

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(errors.LostRankError, match="something else answers"):
            client.rendezvous(f"127.0.0.1:{other.getsockname()[1]}", 1, 2, 0.5, KEY)
    thread.join(10)


# ---------------------------------------------------------------------------------------------------------- strangers


def fields(**changes):
    versions = messages.versions()
    return {"rank": 1, "size": 2, "host": "evil", "versions": versions, "nonce": b"n" * 16} | changes


def frame(value, key=KEY, which="rank"):
    """Return what a holder of the key would say, as a function of the challenge."""
    return lambda nonce: messages.sign_value(key, which, nonce, value)


def plain(data):
    return lambda nonce: data


def recorded(nonce):
    """What a rank said to another challenge, on another day."""
    return messages.sign_value(KEY, "rank", b"x" * 16, fields())


STRANGERS = {
    "nothing at all": plain(b""),
    "one byte": plain(b"x"),
    "garbage": plain(b"\x00\xff" * 50 + b"\n"),
    "a request of the web": plain(b"GET / HTTP/1.0\r\n\r\n"),
    "brackets": plain(b"[" * 30000 + b"\n"),
    "a length that never comes": plain(struct.pack("<I", 8000)),
    "a large length": plain(b"\xff\xff\xff\xff" + b"y" * 100),
    "half a signature": plain(messages.frame_bytes(b"t" * 20)),
    "no signature": plain(messages.frame_bytes(encoding.encode(fields()))),
    "the key of another job": frame(fields(), OTHER),
    "a recorded message": recorded,
    "an answer in place of a message": frame({"hosts": ["a", "b"], "run": b"r" * 16}, which="answer"),
    "signed, no value": lambda n: messages.frame_bytes(signing.sign(KEY, f"roll call, rank {n.hex()}", b"\xc1")),
    "signed, a pickle": lambda n: messages.frame_bytes(
        signing.sign(KEY, f"roll call, rank {n.hex()}", pickle.dumps(3))
    ),
    "signed, a list": frame([1, 2]),
    "signed, no rank": frame({k: v for k, v in fields().items() if k != "rank"}),
    "signed, one field more": frame(fields(more=1)),
    "signed, a rank that is a text": frame(fields(rank="1")),
    "signed, a rank that is true": frame(fields(rank=True)),
    "signed, versions that are a list": frame(fields(versions=[])),
    "signed, a version that is a number": frame(fields(versions={"jax": 1})),
    "signed, a host of 10,000 letters": frame(fields(host="h" * 7000)),
    "signed, short random bytes": frame(fields(nonce=b"n")),
}


def strangers(port, lines, times=1):
    """Connect and speak as soon as rank 0 listens; return the connections, still open."""
    found = []
    for line in lines * times:
        for _ in range(100):
            with contextlib.suppress(ConnectionRefusedError):
                connection = socket.create_connection(("127.0.0.1", port), timeout=5)
                break
            time.sleep(0.02)
        hello = connection.recv(len(messages.HELLO) + 16)
        with contextlib.suppress(OSError):
            connection.sendall(line(hello[-16:]))
        found.append(connection)
    return found


def with_strangers(lines, times=1, timeout_s=20.0):
    """Return what two ranks get when strangers speak before rank 1 comes."""
    port, found = client.free_port(), {}

    def one(rank):
        try:
            found[rank] = client.rendezvous(f"127.0.0.1:{port}", rank, 2, timeout_s, KEY)
        except BaseException as error:
            found[rank] = error

    threads = [threading.Thread(target=one, args=(r,)) for r in range(2)]
    threads[0].start()
    opened = strangers(port, lines, times)
    threads[1].start()
    for thread in threads:
        thread.join(40)
    for connection in opened:
        connection.close()
    return [found.get(r) for r in range(2)]


def test_strangers_change_nothing(caplog):
    with caplog.at_level(logging.WARNING, logger="sbpjax.distributed.rendezvous"):
        first, second = with_strangers(list(STRANGERS.values()))
    assert isinstance(first, client.RendezvousResult) and first == second and "evil" not in first.hosts
    messages_text = [r.getMessage() for r in caplog.records]
    assert 0 < len(messages_text) <= 5 and all(
        "a connection from 127.0.0.1 was dropped: " in text for text in messages_text
    )


def test_mutated_messages_that_are_signed():
    """Whoever has the secret may be of another version, or broken: each field is checked before it is used."""
    draw, whole = random.Random(3), encoding.encode(fields())
    taken = 0
    for _ in range(3_000):
        body = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(body))
            body[at : at + draw.randrange(3)] = draw.randbytes(draw.randrange(3))
        signed = signing.sign(KEY, f"roll call, rank {(b'c' * 16).hex()}", body)
        found, reason = messages.validate_message(KEY, b"c" * 16, signed)
        assert (found is None) == bool(reason)
        if found is not None:
            taken += 1
            assert {k: type(v) for k, v in found.items()} == messages._FIELDS and len(found["nonce"]) == 16
            assert all(type(t) is str for t in (*found["versions"], *found["versions"].values()))
    assert 0 < taken < 2_000


def test_many_silent_connections():
    first, second = with_strangers([plain(b"x")], 200)
    assert isinstance(first, client.RendezvousResult) and first == second


def test_a_silent_connection_is_closed(monkeypatch):
    monkeypatch.setattr(server, "PATIENCE_S", 0.2)
    port = client.free_port()
    thread = threading.Thread(target=lambda: call(2, [0], 1.5, address=f"127.0.0.1:{port}"))
    thread.start()
    (connection,) = strangers(port, [plain(b"x")])
    connection.settimeout(3)
    assert connection.recv(1) == b""
    connection.close()
    thread.join(20)


@pytest.mark.parametrize("name", ["no rank of this size", "rank 0 itself", "a negative rank"])
def test_ranks_of_this_job_that_do_not_fit_are_an_error_of_all(name):
    wrong = {
        "no rank of this size": fields(rank=7),
        "rank 0 itself": fields(rank=0),
        "a negative rank": fields(rank=-1),
    }
    first, _ = with_strangers([frame(wrong[name])], timeout_s=1.0)
    assert isinstance(first, errors.AgreementError) and "a rank of its own below it" in str(first)


def test_another_secret_ends_in_an_error_on_all(monkeypatch):
    monkeypatch.setattr(client, "_REFUSED_S", 0.3)
    first, second = call(2, [0, 1], 1.5, keys={1: OTHER})
    assert isinstance(first, errors.LostRankError) and "job's secret (another job on this port?)" in str(first)
    assert isinstance(second, errors.ForeignMessageError) and "is of another job" in str(second)
    assert "\n  fix:  export SBPJAX_JOB_SECRET=" in str(second)


def test_two_jobs_on_one_port_do_not_pair():
    """The ranks come as A0, B1, A1: B1 waits for a rank 0 of its own, and B0 comes when the port is free again."""
    address, found = f"127.0.0.1:{client.free_port()}", {}

    def one(job, rank):
        found[job, rank] = client.rendezvous(address, rank, 2, 20.0, {"A": KEY, "B": OTHER}[job])

    threads = {k: threading.Thread(target=one, args=k) for k in (("A", 0), ("B", 1), ("A", 1), ("B", 0))}
    for k in (("A", 0), ("B", 1), ("A", 1)):
        threads[k].start()
        time.sleep(0.3)
    threads["A", 0].join(20)
    threads["B", 0].start()
    for thread in threads.values():
        thread.join(20)
    assert found["A", 0] == found["A", 1] and found["B", 0] == found["B", 1]
    assert found["A", 0].key != found["B", 0].key


def test_a_false_rank_0_is_not_believed():
    """It has seen the protocol, and answers without the key, or with an answer of another run."""
    for key, nonce in ((OTHER, None), (KEY, b"x" * 16)):
        with socket.socket() as false:
            false.bind(("127.0.0.1", 0))
            false.listen()

            def serve(false=false, key=key, nonce=nonce):
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = false.accept()
                        connection.sendall(messages.HELLO + b"c" * 16)
                        time.sleep(0.05)
                        connection.recv(65536)
                        answer = {"hosts": ["evil"] * 2, "run": b"r" * 16}
                        connection.sendall(messages.sign_value(key, "answer", nonce or b"y" * 16, answer))
                        connection.close()

            threading.Thread(target=serve, daemon=True).start()
            with pytest.raises(errors.ForeignMessageError, match="lacks this job's secret"):
                client.rendezvous(f"127.0.0.1:{false.getsockname()[1]}", 1, 2, 0.5, KEY)


def test_the_address_to_listen_on():
    assert server.bind_address("127.0.0.1") == server.bind_address("localhost") == "127.0.0.1"
    assert server.bind_address("203.0.113.7") == "" == server.bind_address("no.such.host.invalid")
    assert client.split("[::1]:29500") == ("::1", 29500) and client.split("node0:1") == ("node0", 1)
