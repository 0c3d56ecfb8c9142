"""Functional forms of the layers, with PyTorch's signatures."""

from sbpjax._core.functions.table.table import reexport_hooks as _face

__getattr__, __dir__ = _face("nn.functional", globals())
