"""`torch.optim`: optimizers that have no meaning here, and functions that were methods."""

from __future__ import annotations

from .absent import absent

SparseAdam = absent(
    "torch.optim.SparseAdam", "gradients are dense here", "sbpjax.optim.Adam, whose rows without gradient decay only"
)
