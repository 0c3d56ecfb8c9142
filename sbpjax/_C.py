"""OneFlow's functional ops under their original names: ``flow._C.matmul(a, b, transpose_b=True)``."""

from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks

__getattr__, __dir__ = _reexport_hooks("_C", globals(), "nn.functional", "", "fft", "special", "Tensor")
