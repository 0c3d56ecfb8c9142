"""`torch.export`: programs of PyTorch's own, which a graph written as StableHLO replaces."""

from __future__ import annotations

from .absent import absences

__getattr__ = absences(
    "torch.export",
    "exported programs hold PyTorch's own graphs",
    "graph.export(path)  # of an nn.Graph, as StableHLO",
)
