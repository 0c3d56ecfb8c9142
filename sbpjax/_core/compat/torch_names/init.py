"""`torch.nn.init`: private helpers of the initialisers, for model libraries."""

from __future__ import annotations

from sbpjax.nn import init

_calculate_fan_in_and_fan_out = init.fans
