"""The roll call: who is missing, who does not fit; each rank a thread of this process."""

import socket
import threading

import pytest

from sbpjax import errors
from sbpjax.processes import roll_call as rolls


def call(size, ranks, timeout_s=10.0, sizes=None):
    """Hold a roll call and return what each rank gets: the hosts, or an error."""
    address = f"127.0.0.1:{rolls.free_port()}"
    found = {}

    def one(i, rank):
        try:
            found[i] = rolls.roll_call(address, rank, (sizes or {}).get(i, size), timeout_s)
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
    hosts = call(3, [2, 0, 1])
    assert hosts[0] == hosts[1] == hosts[2] and len(hosts[0]) == 3 and len(set(hosts[0])) == 1


def test_missing_ranks_are_named_on_all():
    for error in call(4, [0, 2], timeout_s=0.5):
        assert isinstance(error, errors.LostRankError) and "ranks [1, 3] of 4 did not come within 0.5 s" in str(error)
        assert "\n  fix:  " in str(error)


def test_missing_coordinator():
    (error,) = call(2, [1], timeout_s=0.5)
    assert isinstance(error, errors.LostRankError) and "rank 0 did not answer within 0.5 s" in str(error)


def test_one_rank_twice():
    for error in call(3, [0, 1, 1]):
        assert isinstance(error, errors.AgreementError) and "two processes say that they are rank 1" in str(error)


def test_other_number_of_processes():
    for error in call(2, [0, 1], sizes={1: 3}):
        assert isinstance(error, errors.AgreementError) and "for 3 processes, rank 0 for 2" in str(error)


def test_other_versions(monkeypatch):
    own = rolls.versions()
    monkeypatch.setattr(
        rolls, "versions", lambda: own if threading.current_thread() is threads[0] else own | {"jax": "0.1"}
    )
    port, found = rolls.free_port(), {}

    def one(rank):
        try:
            rolls.roll_call(f"127.0.0.1:{port}", rank, 2, 10.0)
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
            rolls.roll_call(f"127.0.0.1:{holder.getsockname()[1]}", 0, 2, 1.0)
        assert "--port 0" in str(raised.value)


def test_something_else_answers():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        other.settimeout(5)

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
            rolls.roll_call(f"127.0.0.1:{other.getsockname()[1]}", 1, 2, 0.5)
    thread.join(10)
