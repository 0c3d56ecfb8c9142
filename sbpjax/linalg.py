"""Linear algebra under the names of ``torch.linalg``: norms, decompositions, solvers."""

from sbpjax._core.functions.linear_algebra.linalg import LinAlgError as LinAlgError
from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks

__getattr__, __dir__ = _reexport_hooks("linalg", globals())
