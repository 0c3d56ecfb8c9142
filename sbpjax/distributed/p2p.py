"""Point-to-point communication: `send`, `recv`, and batches of them."""

from __future__ import annotations

from dataclasses import dataclass

from sbpjax._core.runtime import processes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import AgreementError, OpValueError

from . import bodies
from .collectives import _write
from .group import ProcessGroup, Work, group_of, local_array, run


def pair_of(operation: str, peer: int, group: ProcessGroup | None, i_send: bool) -> ProcessGroup:
    """Return the group of sender and receiver, in this order."""
    group_of(group).index(peer, operation)
    me = processes.current().rank
    if peer == me:
        rule = "a rank sends to another rank"
        raise OpValueError(operation, f"rank {me} with itself", rule, "use the tensor itself, or x.clone()")
    return ProcessGroup((me, peer) if i_send else (peer, me))


def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> None:
    """Send a tensor to rank ``dst``, which calls `recv` with the same tag."""
    _transfer(tensor, pair_of(f"send(tensor, dst={dst}, tag={tag})", dst, group, True), tag)


def recv(tensor: Tensor, src: int, group: ProcessGroup | None = None, tag: int = 0) -> int:
    """Receive a tensor from rank ``src`` in place, and return ``src``."""
    _transfer(tensor, pair_of(f"recv(tensor, src={src}, tag={tag})", src, group, False), tag)
    return src


def _transfer(tensor: Tensor, pair: ProcessGroup, tag: int) -> None:
    operation = f"send and recv from rank {pair.ranks[0]} to rank {pair.ranks[1]}, tag {tag}"
    array = local_array(operation, tensor)
    (out,) = run(operation, bodies.permute_blocks, pair, [array], (("pairs", ((0, 1),)),))
    if pair.rank() == 1:
        _write(tensor, out)


def send_facts(tensor: Tensor, dst: int) -> None:
    """Send the shape and dtype of a tensor to rank ``dst`` before the tensor."""
    pair = pair_of(f"send(tensor, dst={dst})", dst, None, True)
    array = local_array("send(tensor)", tensor)
    facts = (tuple(array.shape), str(array.dtype))
    processes.current().exchange(_pair_operation(pair), facts, pair.ranks)


def recv_facts(src: int) -> tuple[tuple[int, ...], str]:
    """Return the shape and dtype of the tensor that rank ``src`` is about to send."""
    pair = pair_of(f"recv(src={src})", src, None, False)
    return processes.current().exchange(_pair_operation(pair), None, pair.ranks)[src]


def _pair_operation(pair: ProcessGroup) -> str:
    return f"send and recv from rank {pair.ranks[0]} to rank {pair.ranks[1]}: shape and dtype"


@dataclass
class P2POp:
    """One send or receive of a batch.

    Attributes:
        op: `isend` or `irecv` (or `send`, `recv`).
        tensor: the tensor sent, or received in place.
        peer: the other rank.
        group: the group that both are in.
        tag: distinguishes several messages between two ranks.
    """

    op: object
    tensor: Tensor
    peer: int
    group: ProcessGroup | None = None
    tag: int = 0


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Run a batch of sends and receives in an order that all ranks agree on; the other ranks run the counterparts.

    Raises:
        AgreementError: a send has no receive, or a receive no send.
    """
    world = processes.current()
    mine = []
    for op in p2p_op_list:
        sends = op.op in (isend, send)
        pair = pair_of("batch_isend_irecv(ops)", op.peer, op.group, sends)
        mine.append((pair.ranks, op.tag, op))
    gathered = world.exchange("batch_isend_irecv(ops)", sorted((ranks, tag) for ranks, tag, _ in mine))
    for rank, messages in gathered.items():
        for (a, b), tag in messages:
            other = b if rank == a else a
            if messages.count(((a, b), tag)) != gathered[other].count(((a, b), tag)):
                seen = (
                    f"rank {rank} has {messages.count(((a, b), tag))}, {other} {gathered[other].count(((a, b), tag))}"
                )
                rule = f"a message from rank {a} to {b} with tag {tag} is sent once and received once"
                raise AgreementError("batch_isend_irecv(ops)", seen, rule, "add the missing isend or irecv")
    for ranks, tag, op in sorted(mine, key=lambda m: m[:2]):
        _transfer(op.tensor, ProcessGroup(ranks), tag)
    return [Work([op.tensor]) for op in p2p_op_list]


def isend(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> Work:
    """Send a tensor to rank ``dst`` and return a handle; both directions at once go through `batch_isend_irecv`."""
    send(tensor, dst, group, tag)
    return Work([tensor])


def irecv(tensor: Tensor, src: int, group: ProcessGroup | None = None, tag: int = 0) -> Work:
    """Receive a tensor from rank ``src`` and return a handle; see `isend`."""
    recv(tensor, src, group, tag)
    return Work([tensor])
