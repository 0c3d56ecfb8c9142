"""`torch.nn.attention`: selection of attention kernels."""

from __future__ import annotations

import contextlib
import enum

from sbpjax._core.functions.layers.attention import attention_by


class SDPBackend(enum.IntEnum):
    """The kernels that PyTorch chooses from."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority: bool = False):
    """Choose the kernels for the attention that a block runs or traces; dropout has only the one of `MATH`.

    `MATH` is the composition, which holds all scores; `CUDNN_ATTENTION` cuDNN's kernel, or blocks where it cannot be;
    `EFFICIENT_ATTENTION` the blocks; `FLASH_ATTENTION` the platform's kernel. With several, `MATH` among them, the
    length decides, as without a choice.

    Args:
        backends: a `SDPBackend` or several.
        set_priority: take the first of them.
    """
    given = [backends] if isinstance(backends, SDPBackend) else list(backends)
    chosen = set(given[:1] if set_priority else given)
    names = {_NAMES.get(b, "kernel") for b in chosen}
    if len(names) == 1:
        (name,) = names
    else:
        name = "auto" if "plain" in names or not names else "kernel"
    with attention_by(name):
        yield {}


_NAMES = {
    SDPBackend.MATH: "plain",
    SDPBackend.EFFICIENT_ATTENTION: "blocks",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
}
