"""`oneflow` answered by sbpjax: a script written for OneFlow runs as it is.

    with sbpjax.mock_oneflow.enable():
        import oneflow as flow
        import oneflow.nn as nn

As `sbpjax.mock_torch`, of which it is the counterpart.
"""

from __future__ import annotations

from .mock.peer import Peer
from .mock.switch import Disable, Enable

PEER = "0.9.0"  # the release whose recorded facts the tests compare with

_FLAT = "activation batchnorm container conv dropout flatten linear loss module normalization padding pooling rnn"

TABLE = {
    **{f"oneflow.nn.modules.{name}": ("sbpjax.nn",) for name in _FLAT.split()},
    "oneflow.nn.modules": ("sbpjax.nn",),
    "oneflow.nn.parameter": ("sbpjax.nn",),
    "oneflow.nn.optimizer": ("sbpjax.optim",),
    "oneflow.optim.optimizer": ("sbpjax.optim",),
    "oneflow.framework": ("sbpjax",),
    "oneflow.framework.tensor": ("sbpjax",),
    "oneflow.framework.dtype": ("sbpjax",),
}

peer = Peer("oneflow", TABLE, f"{PEER}+sbpjax")


class enable(Enable):
    """Answer to imports of ``oneflow``; see `sbpjax.mock.switch.Enable` for the options."""

    _peer = peer


class disable(Disable):
    """Stop answering to imports of ``oneflow``: inside a block, or from now on."""

    _peer = peer


def is_enabled() -> bool:
    """Return whether imports of ``oneflow`` resolve here now."""
    return peer.is_enabled
