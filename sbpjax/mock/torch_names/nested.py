"""`torch.nested`: tensors of rows of different lengths, which are padded or packed here."""

from __future__ import annotations

from .absent import absences

__getattr__ = absences(
    "torch.nested", "tensors have one shape here", "nn.utils.rnn.pad_sequence(rows, batch_first=True)"
)
