"""Functional forms of the layers, with PyTorch's signatures."""

from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks

__getattr__, __dir__ = _reexport_hooks("nn.functional", globals())
