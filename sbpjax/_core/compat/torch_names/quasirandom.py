"""`torch.quasirandom`: points of low discrepancy, by SciPy.

SobolEngine(2).draw(3)          # [[0, 0], [0.5, 0.5], [0.75, 0.25]]
"""

from __future__ import annotations

import warnings
from typing import Any

from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.from_data import tensor
from sbpjax._core.tensor.handle.dtype import dtype as Dtype
from sbpjax._core.tensor.handle.dtype import get_default_dtype

qmc = LazyModule("scipy.stats.qmc")


class SobolEngine:
    """The points of Sobol's sequence, with the direction numbers of Joe and Kuo, as PyTorch's.

    Args:
        dimension: the number of coordinates of a point.
        scramble: randomize the points. Equal seeds give equal points here, but not PyTorch's.
        seed: of the scrambling.
    """

    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._engine = qmc.Sobol(dimension, scramble=scramble, seed=seed)

    @property
    def num_generated(self) -> int:
        """Return how many points were drawn or skipped."""
        return self._engine.num_generated

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """Return the next ``n`` points, ``(n, dimension)``."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # SciPy warns of numbers that are no powers of 2
            found = tensor(self._engine.random(n), dtype=dtype or get_default_dtype())
        return found if out is None else out.resize_(found.shape).copy_(found)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """Return the next ``2**m`` points."""
        return self.draw(2**m, out, dtype)

    def fast_forward(self, n: int) -> Any:
        """Skip ``n`` points, and return the engine."""
        self._engine.fast_forward(n)
        return self

    def reset(self) -> Any:
        """Start again from the first point, and return the engine."""
        self._engine.reset()
        return self
