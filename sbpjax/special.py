"""Special functions: the names of ``torch.special``; the table of ops has them (`_core.functions.rows.special`)."""

from sbpjax._core.functions.table.table import face as _face

__getattr__, __dir__ = _face("special", globals())
