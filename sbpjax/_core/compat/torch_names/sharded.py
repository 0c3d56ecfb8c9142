"""Names of PyTorch's sharded tensors that `dtensor` does not have; errors name the replacement."""

from __future__ import annotations

from .absent import make_absent_getattr

__getattr__ = make_absent_getattr(
    "torch.distributed",
    "sharded tensors are global tensors here: a placement and an sbp",
    "x.to_global(placement, sbp)",
)
