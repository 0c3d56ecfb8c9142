"""Special functions under the names of ``torch.special``; `_core.functions.rows.special` defines them.

>>> flow.special.expit(flow.tensor(0.0))
tensor(0.5000)
"""

from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks

__getattr__, __dir__ = _reexport_hooks("special", globals())
