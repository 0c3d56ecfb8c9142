"""`torch` answered by sbpjax: a script written for PyTorch runs as it is.

    with sbpjax.mock_torch.enable():
        import torch.nn.functional as F
        from transformers_like import Model      # its own `import torch` resolves here, too

As a plain call, ``sbpjax.mock_torch.enable()`` holds until its ``.disable()``; ``python -m sbpjax.run --as torch
script.py`` wraps a whole script. Names are looked up when used; a name that sbpjax lacks is an error that says it in
full, and ``hasattr`` says False. The real PyTorch, if it is loaded, is set aside and comes back unchanged.
"""

from __future__ import annotations

from .mock.peer import Peer
from .mock.switch import Disable, Enable
from .mock.torch_names.version import __version__ as _version
from .mock.torch_table import GONE_THROUGH, TABLE

peer = Peer("torch", TABLE, _version, GONE_THROUGH)


class enable(Enable):
    """Answer to imports of ``torch``; see `sbpjax.mock.switch.Enable` for the options.

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
