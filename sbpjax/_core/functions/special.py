"""Re-export module of ``torch.special``; the functions are in `_core.functions.rows.special`.

>>> flow.special.expit(flow.tensor(0.0))
tensor(0.5000)
"""

from .table.table import reexport_hooks as _face

__getattr__, __dir__ = _face("special", globals())
