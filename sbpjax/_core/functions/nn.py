"""The functions behind the layers: what the table of ops shows as `nn.functional`, and those of them with logic."""

from sbpjax._core.functions.table.table import face as _face

__getattr__, __dir__ = _face("nn.functional", globals())
