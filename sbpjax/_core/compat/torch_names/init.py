"""`torch.nn.init`: the helpers of the initialisers, which model libraries call by their private names."""

from __future__ import annotations

from sbpjax.nn import init

_calculate_fan_in_and_fan_out = init.fans
