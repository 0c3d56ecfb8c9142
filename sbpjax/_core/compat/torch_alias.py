"""The alias `torch` and its switch; re-exported by `sbpjax.mock_torch`."""

from __future__ import annotations

from .peer import Peer
from .switch import Disable, Enable
from .torch_names.version import __version__ as _version
from .torch_table import COMPILED, GONE_THROUGH, TABLE

peer = Peer("torch", TABLE, _version, GONE_THROUGH, COMPILED)


class enable(Enable):
    """Answer to imports of ``torch``; see `Enable` for the options.

    Example:
        >>> with sbpjax.mock_torch.enable():
        ...     import torch
        >>> torch.Tensor is sbpjax.Tensor
        True
    """

    _peer = peer


class disable(Disable):
    """Stop answering to imports of ``torch``: inside a block, or from now on."""

    _peer = peer


def is_enabled() -> bool:
    """Return whether imports of ``torch`` resolve here now."""
    return peer.is_enabled
