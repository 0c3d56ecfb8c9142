"""`torch.sparse`: tensors of few nonzero elements, which are dense here."""

from __future__ import annotations

from .absent import absences

__getattr__ = absences("torch.sparse", "tensors are dense here", "a dense tensor, or index_add and gather")
