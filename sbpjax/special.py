"""Special functions: the names of ``torch.special``; the table of ops has them (`sbpjax.functions.rows.special`)."""

from sbpjax.functions.table import face as _face

__getattr__, __dir__ = _face("special", globals())
