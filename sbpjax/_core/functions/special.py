"""Special functions: the names of ``torch.special``; the table of ops has them (`_core.functions.rows.special`).

>>> flow.special.expit(flow.tensor(0.0))
tensor(0.5000)
"""

from .table.table import face as _face

__getattr__, __dir__ = _face("special", globals())
