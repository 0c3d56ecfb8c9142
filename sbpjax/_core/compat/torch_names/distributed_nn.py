"""`torch.distributed.nn`: collectives through which gradients travel; they return new tensors.

The loss of the run is the sum of the ranks' losses, as in `sbpjax.distributed.functional`, which these are.
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor import Tensor
from sbpjax.distributed import functional as _f
from sbpjax.distributed.group import group_of


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return every rank's tensor."""
    count = group_of(group).size()
    whole = tensor.unsqueeze(0) if tensor.ndim == 0 else tensor
    parts = _f.all_gather(whole, group).chunk(count)
    return tuple(part.reshape(tensor.shape) for part in parts)
