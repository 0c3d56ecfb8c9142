"""`torch.onnx`: graphs are written as StableHLO here, so its names can be mentioned but not used."""

from __future__ import annotations

import enum

from .absent import absences

_WHY = "ONNX files are written from PyTorch's own graphs"
_USE = "graph.export(path)  # of an nn.Graph, as StableHLO"


class TrainingMode(enum.IntEnum):
    """How a module is written."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """Which ops a file may hold."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def is_in_onnx_export() -> bool:
    """Return False."""
    return False


__getattr__ = absences("torch.onnx", _WHY, _USE)
