"""Linear algebra under the names of ``torch.linalg``: norms, decompositions, solvers."""

from sbpjax._core.functions.linear_algebra.linalg import LinAlgError as LinAlgError
from sbpjax._core.functions.table.table import reexport_hooks as _face

__getattr__, __dir__ = _face("linalg", globals())
