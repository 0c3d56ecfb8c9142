"""What a stranger does who reaches the coordinator's store: rank 1 plays it, past all that signs."""

import os
import pickle
import socket
import sys
import time

import sbpjax  # noqa: F401  # connects the processes
from sbpjax import errors
from sbpjax._core.runtime import processes
from sbpjax._core.serialization import encoding, signing
from sbpjax.distributed.rendezvous import failure

w = processes.current()
rank, client = w.rank, processes._state().client
RAN = f"ran.{os.getpid()}"


class Evil:
    def __reduce__(self):
        return open, (RAN, "w")


def at(step):
    """Both ranks are here; said past what is under attack."""
    client.wait_at_barrier(f"step {step}", 60_000)


def name(of_rank, later=0):
    return f"sbpjax/all/{w._counts.get((0, 1), 0) + later}/{of_rank}"


def refused(words, call):
    try:
        call()
    except errors.ForeignMessageError as error:
        assert words in str(error) and "\n  fix:  " in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


def forged(step, data):
    """Write a value under rank 0's name before rank 0 does; rank 1 reads it, rank 0 finds it there."""
    at(f"{step} begins")
    if rank == 1:
        client.key_value_set_bytes(name(0), data())
        refused("that no rank of this run signed", lambda: w.exchange(step, 1))
    at(f"{step} was read")
    if rank == 0:
        refused("that no rank of this run signed", lambda: w.exchange(step, 0))
    at(f"{step} is over")


assert w.exchange("before", rank) == {0: 0, 1: 1}
last = [None]
at("copy")
if rank == 1:
    last[0] = client.key_value_try_get_bytes("sbpjax/all/0/0")
assert encoding.decode(last[0][32:])[:2] == ("before", 0) if rank == 1 else True

forged("a pickle", lambda: pickle.dumps(Evil(), 2))
forged("a pickle behind a signature of another key", lambda: signing.sign(b"s" * 32, name(0), pickle.dumps(Evil(), 2)))
forged("no signature", lambda: encoding.encode(("no signature", 0)))
forged("a signature that ends", lambda: signing.sign(w.key, name(0), b"")[:20])
forged("rank 0's value of an earlier meeting", lambda: last[0])
forged("rank 1's value", lambda: signing.sign(w.key, name(1), encoding.encode(("rank 1's value", 0))))
forged("the key of the job before this run", lambda: signing.sign(
    signing.derive_key(b"0123456789abcdef", "job"), name(0), encoding.encode((0, 0))))  # fmt: skip
forged("something large", lambda: b"\xdd\xff\xff\xff\xff" * 400_000)
assert w.exchange("after", rank) == {0: 0, 1: 1}, "the ranks are in step again"

# A rank that is said to have ended, and a failure that nobody reported: neither is believed.
at("forge the end")
if rank == 1:
    client.key_value_set_bytes(f"{processes.ENDED}/0", b"0")
    client.key_value_set(failure._KEY, "rank 0 failed: nothing of the kind")
    assert not w.has_ended(0)
at("forged")
if rank == 0:
    time.sleep(3 * failure._LOOK_S)  # rank 1 waits meanwhile, and would give up
assert w.exchange("the end", rank) == {0: 0, 1: 1} and w.failure is None
assert not os.path.exists(RAN)


# The coordinator listens at the address of the job alone.
with socket.create_connection(("127.0.0.1", int(os.environ["MASTER_PORT"])), timeout=5):
    pass
if sys.platform == "linux":  # where all of 127.0.0.0/8 is this machine
    try:
        socket.create_connection(("127.0.0.2", int(os.environ["MASTER_PORT"])), timeout=5)
    except ConnectionRefusedError:
        pass
    else:
        raise AssertionError("the coordinator listens on other addresses")
assert signing.SECRET not in os.environ, "what a rank starts does not get the secret"
print(f"rank {rank} of 2 passed", flush=True)
