"""Argument types of public functions, for annotations.

    def tile(input: Tensor, *dims: IntOrInts) -> Tensor: ...

They are types of inputs, not of results: ``dtype="float32"`` and ``dtype=np.float32`` are a `DTypeLike`, every
``x.dtype`` is a `dtype`. Import them under ``TYPE_CHECKING``; they are not used at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import jax
import numpy as np

from sbpjax.sbp.algebra import sbp

from .device import device
from .dtype import dtype
from .tensor import Tensor

Scalar: TypeAlias = int | float | complex | np.generic
"""A number of Python or NumPy."""

TensorLike: TypeAlias = Tensor | Scalar | np.ndarray
"""An operand: a tensor, or a value taken for a constant one."""

ArrayLike: TypeAlias = TensorLike | jax.Array | Sequence["ArrayLike"]
"""A value that a tensor can be made of: nested lists too."""

IntOrInts: TypeAlias = int | Sequence[int]
"""A dim or several; a size in each of several dims, or one for all."""

FloatOrFloats: TypeAlias = float | Sequence[float]

DTypeLike: TypeAlias = dtype | np.dtype | type | str
DeviceLike: TypeAlias = device | str | int
SbpLike: TypeAlias = sbp | str | Sequence[sbp | str]
