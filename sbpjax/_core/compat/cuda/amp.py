"""`torch.cuda.amp`: `autocast` of the device type ``"cuda"``."""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor.amp.autocast import autocast as _autocast
from sbpjax._core.tensor.amp.autocast import custom_bwd as custom_bwd
from sbpjax._core.tensor.amp.autocast import custom_fwd as custom_fwd
from sbpjax.optim.grad_scaler import GradScaler as GradScaler


class autocast(_autocast):
    """`sbpjax.autocast` with ``"cuda"`` as its device type.

    Args:
        enabled: whether it is on.
        dtype: of lower precision; float16 if not given.
        cache_enabled: see `sbpjax.autocast`.
    """

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = None) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
