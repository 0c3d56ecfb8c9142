"""Public functions of the package, defined by the table of ops (`table`).

Code of the package takes them from here: ``from sbpjax._core import functions`` and ``functions.cat(...)``. Each is
made on first access.
"""

from . import rows as rows
from .table.table import reexport_hooks as _reexport_hooks

__getattr__, __dir__ = _reexport_hooks("", globals())
