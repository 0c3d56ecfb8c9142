"""`oneflow.sysconfig`: build options of the package."""

from __future__ import annotations

from sbpjax._core.compat.cuda import devices as cuda


def with_cuda() -> bool:
    """Return whether JAX has GPUs."""
    return cuda.is_available()


def with_rdma() -> bool:
    """Return False: connections between devices belong to JAX."""
    return False


def with_mlir() -> bool:
    """Return True: programs go through MLIR to XLA."""
    return True


def with_xla() -> bool:
    """Return True."""
    return True


def has_rpc_backend_grpc() -> bool:
    """Return True: the rendezvous is through JAX's coordinator, which speaks gRPC."""
    return True


def has_rpc_backend_local() -> bool:
    """Return True: one process needs no other."""
    return True


def cmake_build_type() -> str:
    """Return a text: there is nothing to build."""
    return "Release"
