"""Names of `sbpjax` that are loaded when they are first asked for.

Importing sbpjax is measured, and few programs take a Fourier transform. So ``sbpjax.fft``, ``sbpjax.svd`` and their
like are no imports of the package's face: the table here says which module has a name, `attribute` fetches it then,
and the package keeps it. `names` adds them to ``dir(sbpjax)``.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

ROOMS = (
    "asyncs",
    "backends",
    "boxing",
    "cuda",
    "distributions",
    "fft",
    "hub",
    "linalg",
    "one_embedding",
    "profiler",
    "special",
    "unittest",
)
HOMES = {
    "sbpjax.tensor.complex": """angle complex conj_physical is_conj is_neg isreal polar resolve_conj resolve_neg sgn
 view_as_complex view_as_real""",
    "sbpjax.tensor.regions": "nms roi_align",
    "sbpjax.tensor.signal": "bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft",
    "sbpjax.tensor.linear_algebra": """chain_matmul cholesky cholesky_inverse cholesky_solve det inverse logdet lu
 lu_solve lu_unpack matrix_exp matrix_power orgqr pinverse qr slogdet svd triangular_solve vander""",
}
METHODS = {  # those that are methods of `Tensor` too
    "sbpjax.tensor.signal": "istft stft",
    "sbpjax.tensor.linear_algebra": """cholesky cholesky_inverse cholesky_solve det inverse logdet lu lu_solve
 matrix_exp matrix_power orgqr pinverse qr slogdet svd triangular_solve""",
}
_HOME = {name: module for module, several in HOMES.items() for name in several.split()}


def attribute(name: str) -> Any:
    """Return a name of the package that was not loaded yet.

    Raises:
        AttributeError: the package has no such name.
    """
    if name in ROOMS:
        found = importlib.import_module(f"sbpjax.{name}")
    elif name in _HOME:
        found = getattr(importlib.import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'sbpjax' has no attribute {name!r}")
    setattr(sys.modules["sbpjax"], name, found)
    return found


def names() -> list[str]:
    """Return what ``dir(sbpjax)`` shows: what is loaded and what can be."""
    return sorted({*vars(sys.modules["sbpjax"]), *ROOMS, *_HOME})


def _late(module: str, name: str):
    def method(self, *args, **options):
        from .tensor import Tensor

        found = getattr(importlib.import_module(module), name)
        setattr(Tensor, name, found)
        return found(self, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return `sbpjax.{name}` of this tensor."
    return method


def attach_methods(cls: type) -> None:
    """Give `Tensor` the methods of `METHODS`; each loads its function when it is first called."""
    for module, several in METHODS.items():
        for name in several.split():
            setattr(cls, name, _late(module, name))
