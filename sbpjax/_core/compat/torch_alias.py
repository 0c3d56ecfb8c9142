"""The alias `torch` and its switch; re-exported by `sbpjax.mock_torch`."""

from __future__ import annotations

from typing import ClassVar

from .peer import Peer
from .switch import Disable, Enable
from .torch_names.version import __version__ as _version
from .torch_table import GONE_THROUGH, REFUSED, TABLE

peer = Peer("torch", TABLE, _version, GONE_THROUGH, REFUSED)


class enable(Enable):
    """Answer to imports of ``torch``; see `Enable` for the options.

    Example:
        >>> with sbpjax.mock_torch.enable():
        ...     import torch
        >>> torch.Tensor is sbpjax.Tensor
        True
    """

    _peer = peer
    _shipped: ClassVar[dict[str, str]] = {"functorch": "sbpjax.func"}


class disable(Disable):
    """Stop answering to imports of ``torch``: inside a block, or from now on."""

    _peer = peer


def is_enabled() -> bool:
    """Return whether imports of ``torch`` resolve here now."""
    return peer.is_enabled
