"""OneFlow's functional ops under their original names: ``flow._C.matmul(a, b, transpose_b=True)``."""

from sbpjax._core.functions.table.table import reexport_hooks as _face

__getattr__, __dir__ = _face("_C", globals(), "nn.functional", "", "fft", "special", "Tensor")
