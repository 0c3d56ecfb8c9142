"""`SparseAdam` optimizer: Adam on the table rows that a batch looked up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sbpjax._core.tensor import Tensor
from sbpjax.optim.algorithms.adam import Adam
from sbpjax.optim.check import params_value


class SparseAdam(Adam):
    """Adam with sparse updates: rows of a table that have no gradient keep their value and their state.

    The same as `Adam` after ``use_sparse_updates()``. With ``nn.Embedding(..., sparse=True)`` the rows that a batch
    looked up are all that a step reads and writes.

    Example:
        >>> table = flow.nn.Embedding(1000, 16, sparse=True)
        >>> optimizer = optim.SparseAdam(table.parameters(), lr=1e-3)
    """

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        super().__init__(params, lr, betas, eps, maximize=maximize)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if any(isinstance(p, Tensor) and p.is_complex() for p in group["params"]):
            raise params_value("complex parameters", "SparseAdam does not support complex parameters", "optim.Adam")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; their updates are sparse."""
        super().add_param_group({"is_sparse": True, **param_group} if isinstance(param_group, dict) else param_group)
