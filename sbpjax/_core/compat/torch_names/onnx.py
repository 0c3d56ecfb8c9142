"""`torch.onnx`: absent names; graphs are exported as StableHLO here."""

from __future__ import annotations

from .absent import absences

_WHY = "ONNX files are written from PyTorch's own graphs"
_USE = "graph.export(path)  # of an nn.Graph, as StableHLO"


def is_in_onnx_export() -> bool:
    """Return False."""
    return False


__getattr__ = absences("torch.onnx", _WHY, _USE)
