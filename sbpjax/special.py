"""Special functions under the names of ``torch.special``; `_core.functions.rows.special` defines them."""

from sbpjax._core.functions.table.table import reexport_hooks as _face

__getattr__, __dir__ = _face("special", globals())
