"""Bytes that the usual strategies would send in a step, by their formulas: Megatron-LM's and FSDP's.

For a step on a (data) × b (tensor) ranks with parameters of W bytes, n = a·b:

    Megatron-LM   2 (b - 1) / b of every summed activation and gradient, divided among the data ranks,
                  and 2 (a - 1) / a of the gradients, W / b where matrices are split
    FSDP          (n - 1) / n of W for every gather: before the forward, again before the backward,
                  and as much for the gradients, which are scattered

Nothing is planned: `sbpjax._core.inspect.auto.report` plans the same strategies, which takes as long as the plan did.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from sbpjax.graph.auto.planning_problem import BATCH, PARAMETER, PlanningProblem

from .megatron import TensorParallel


@dataclass(frozen=True)
class UsualTraffic:
    """Bytes that one device would receive in one step under the usual strategies."""

    problem: PlanningProblem

    @cached_property
    def axis(self) -> int:
        """The mesh axis of tensor parallelism: the last one that divides no argument, or the last."""
        arguments = [x.own for x in self.problem.inputs if x.kind == BATCH]
        free = [k for k in range(len(self.problem.sizes)) if all(codes[k] < 0 for codes in arguments)]
        return free[-1] if free else len(self.problem.sizes) - 1

    @cached_property
    def ranks(self) -> tuple[int, int]:
        """The number of data-parallel and of tensor-parallel ranks."""
        tensor = self.problem.sizes[self.axis]
        return math.prod(self.problem.sizes) // tensor, tensor

    @cached_property
    def _parameters(self) -> dict[int, int]:
        """Bytes of each parameter, by its position."""
        inputs = enumerate(self.problem.inputs)
        return {i: math.prod(x.shape) * x.dtype.itemsize for i, x in inputs if x.kind == PARAMETER}

    @cached_property
    def _rule(self) -> TensorParallel:
        return TensorParallel(self.problem.program, self._parameters, self.ranks[1])

    def activations(self, parameters: Collection[int] | None = None) -> int:
        """Return the bytes of activations if parameters, by default all, stay split on the tensor-parallel axis."""
        data, tensor = self.ranks
        counted = self._parameters if parameters is None else parameters
        return 2 * (tensor - 1) * sum(self._rule.summed[i] for i in counted) // (tensor * data)

    @property
    def megatron(self) -> int:
        """Bytes of Megatron-LM's tensor parallelism with data parallelism."""
        data, tensor = self.ranks
        held = sum(size // (tensor if self._rule.codes[i] >= 0 else 1) for i, size in self._parameters.items())
        return self.activations() + 2 * (data - 1) * held // data

    @property
    def fsdp(self) -> int:
        """Bytes of FSDP (ZeRO stage 3) over all ranks."""
        ranks = math.prod(self.problem.sizes)
        gathered = sum(self._rule.read[i] or size for i, size in self._parameters.items())
        return (ranks - 1) * (2 * gathered + sum(self._parameters.values())) // ranks
