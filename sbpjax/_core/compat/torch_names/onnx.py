"""`torch.onnx`: graphs are written as StableHLO here, so its names can be mentioned but not used."""

from __future__ import annotations

from .absent import absences

_WHY = "ONNX files are written from PyTorch's own graphs"
_USE = "graph.export(path)  # of an nn.Graph, as StableHLO"


def is_in_onnx_export() -> bool:
    """Return False."""
    return False


__getattr__ = absences("torch.onnx", _WHY, _USE)
