"""Collectives under OneFlow's older names; re-exported by `sbpjax.comm`."""

from __future__ import annotations

from sbpjax import distributed as _dist
from sbpjax._core.functions.table.public import add_oneflow_arguments as _take_oneflow
from sbpjax._core.tensor.creation.creation import empty as _empty
from sbpjax._core.tensor.handle import dtype as _dtypes
from sbpjax._core.tensor.handle.dtype import dtype as _dtype
from sbpjax._core.tensor.handle.tensor import Tensor as _Tensor
from sbpjax.distributed.collectives import all_gather_into_tensor as all_gather_into_tensor
from sbpjax.distributed.collectives import barrier as barrier
from sbpjax.distributed.collectives import broadcast as broadcast
from sbpjax.distributed.p2p import recv_facts as _recv_facts
from sbpjax.distributed.p2p import send_facts as _send_facts


def all_reduce(tensor: _Tensor) -> None:
    """Replace ``tensor`` on every rank by the sum over all ranks."""
    _dist.all_reduce(tensor)


def all_gather(tensor_list: list, tensor: _Tensor) -> None:
    """Put the tensor of every rank into ``tensor_list``."""
    _dist.all_gather(tensor_list, tensor)


def all_to_all(output_tensor_list: list, input_tensor_list: list) -> None:
    """Send the k-th input to rank k, and put the tensor from rank k into the k-th output."""
    _dist.all_to_all(output_tensor_list, input_tensor_list)


def gather(tensor: _Tensor, gather_list: list | None = None, dst: int = 0) -> None:
    """Put the tensor of every rank into ``gather_list`` on rank ``dst``."""
    _dist.gather(tensor, gather_list, dst)


def reduce(tensor: _Tensor, dst: int) -> None:
    """Replace ``tensor`` on rank ``dst`` by the sum over all ranks."""
    _dist.reduce(tensor, dst)


def reduce_scatter(output: _Tensor, input_list: list) -> None:
    """Put the sum of all ranks' k-th tensors into ``output`` on rank k."""
    _dist.reduce_scatter(output, input_list)


def reduce_scatter_tensor(output_tensor: _Tensor, input_tensor: _Tensor) -> None:
    """Put the sum of all ranks' k-th parts along dim 0 into ``output_tensor`` on rank k."""
    _dist.reduce_scatter_tensor(output_tensor, input_tensor)


def scatter(tensor: _Tensor, scatter_list: list | None = None, src: int = 0) -> None:
    """Put the k-th tensor of rank ``src``'s list into ``tensor`` on rank k."""
    _dist.scatter(tensor, scatter_list, src)


def send(tensor: _Tensor, dst: int, send_meta: bool = True) -> None:
    """Send a tensor to rank ``dst``.

    Args:
        tensor: the tensor.
        dst: the receiving rank, which calls `recv`.
        send_meta: send shape and dtype first; without it `recv` is given them.
    """
    if send_meta:
        _send_facts(tensor, dst)
    _dist.send(tensor, dst)


def recv(src: int, shape=None, dtype=None, device=None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the tensor that rank ``src`` sends.

    Args:
        src: the sending rank.
        shape: its shape, if the sender does not send it (``send_meta=False``).
        dtype: its dtype, likewise.
        device: where to put it.
        out: receive into this tensor.
    """
    if shape is None:
        shape, name = _recv_facts(src)
        dtype = _find_dtype(name)
    tensor = _empty(*shape, dtype=dtype, device=device) if out is None else out
    _dist.recv(tensor, src)
    return tensor


def _find_dtype(name: str) -> _dtype:
    return next(d for np_dtype, d in _dtypes._BY_NP.items() if str(np_dtype) == name)


_take_oneflow(globals(), "comm.")
