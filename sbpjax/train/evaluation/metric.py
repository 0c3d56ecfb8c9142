"""`Metric`: base of metrics, whose states are merged exactly over batches and ranks; `ExactSum`: sums without rounding.

A state is a dict of three kinds of values: whole numbers (counts), `ExactSum`s, and lists of values per sample, for
metrics that are no sum (Spearman's correlation). The states of two ranks are merged by adding numbers and concatenating
lists. So metrics are the same, bit by bit, however the samples are divided into ranks and batches.

A float is a whole number times a power of two, so a sum of floats is one whole number in units of the smallest power of
two that is needed, 2 to the -1,126: Python's numbers are as long as that needs. Many values are added at once:
those of equal exponent as int64 in NumPy, in two halves that cannot overflow.

Global tensors hold all samples of a batch on every process: nothing is merged. Local tensors and arrays are a
process's own samples: `compute` gathers the states of all processes, and all have to call it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import distributed, env
from sbpjax.errors import TrainError

_UNIT = 1126  # the smallest exponent of `frexp` is -1,073, and a fraction has 53 places
_HALF = 27


class ExactSum:
    """Sum of floats, rounded once, when it is read.

    Example:
        >>> total = ExactSum()
        >>> for part in ([1e16, 1.0], [-1e16, 1.0]):
        ...     total.add(part)
        >>> float(total.value())
        2.0
    """

    def __init__(self, units: int = 0, other: float = 0.0) -> None:
        self._units = units
        self._other = other  # the sum of infinities and NaNs

    def add(self, values: Any) -> None:
        """Add an array of floats."""
        array = np.asarray(values, np.float64).reshape(-1)
        finite = np.isfinite(array)
        if not finite.all():
            self._other += float(array[~finite].sum())
            array = array[finite]
        fractions, exponents = np.frexp(array)
        whole = np.ldexp(fractions, 53).astype(np.int64)
        for exponent in np.unique(exponents):
            of = whole[exponents == exponent]
            total = (int((of >> _HALF).sum()) << _HALF) + int((of & ((1 << _HALF) - 1)).sum())
            self._units += total << int(exponent) - 53 + _UNIT

    def merge(self, other: ExactSum) -> None:
        """Add another sum."""
        self._units, self._other = self._units + other._units, self._other + other._other

    def value(self) -> Fraction | float:
        """Return the sum: exact, or that of the infinities and NaNs."""
        return self._other if self._other != 0 else Fraction(self._units, 1 << _UNIT)

    def mean(self, count: int) -> float:
        """Return the sum over a count, rounded once; NaN for a count of 0."""
        return float(self.value() / count) if count else float("nan")

    def encode(self) -> list[Any]:
        """Return the sum as plain values."""
        return [hex(self._units), self._other]

    @classmethod
    def decode(cls, values: list[Any]) -> ExactSum:
        """Return the sum from the result of `encode`."""
        return cls(int(values[0], 16), values[1])


Select = Callable[[Any, Any], tuple[Any, Any]]
TARGETS = ("targets", "labels")


def predictions_and_targets(outputs: Any, batch: Any) -> tuple[Any, Any]:
    """Return predictions and targets of a batch.

    The prediction is the first of several outputs; the target is ``batch["targets"]``, ``batch["labels"]``, or the
    second entry of a batch that is no dict.

    Raises:
        TrainError: a dict has neither.

    Example:
        >>> predictions_and_targets(0.5, {"images": 1, "labels": 2})
        (0.5, 2)
    """
    predicted = outputs[0] if isinstance(outputs, (tuple, list)) and _is_tensor(outputs[0]) else outputs
    if not isinstance(batch, Mapping):
        return predicted, batch[1]
    name = next((name for name in TARGETS if name in batch), None)
    if name is None:
        rule = f"the target is under {' or '.join(map(repr, TARGETS))}"
        fix = "select=lambda outputs, batch: (outputs, batch[...])"
        raise TrainError("Metric.update(outputs, batch)", f"a batch with {', '.join(batch)}", rule, fix)
    return predicted, batch[name]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (flow.Tensor, np.ndarray))


def host(value: Any) -> np.ndarray:
    """Return the values of a tensor or list as an array; of a global tensor all, on every process."""
    return value.detach().numpy() if isinstance(value, flow.Tensor) else np.asarray(value)


def tensor(value: Any) -> flow.Tensor:
    """Return a tensor, or a list's or an array's values as one."""
    return value if isinstance(value, flow.Tensor) else flow.as_tensor(np.asarray(value))


def to_placement_of(value: Any, other: flow.Tensor) -> flow.Tensor:
    """Return a value as a tensor on the placement of another one, whole on every rank if it was elsewhere."""
    made = tensor(value)
    if not other.is_global or (made.is_global and made.placement == other.placement):
        return made
    return made.to_global(other.placement, [flow.sbp.broadcast] * len(other.sbp))


class Metric:
    """Base of metrics: a subclass defines `zero`, `count` and `result`.

    Args:
        select: ``select(outputs, batch)``, which returns predictions and targets; by default
            `predictions_and_targets`.
    """

    def __init__(self, select: Select | None = None) -> None:
        self._select = predictions_and_targets if select is None else select
        self.reset()

    def zero(self) -> dict[str, Any]:
        """Return the state of no samples: counts, instances of `ExactSum` and lists, by name."""
        raise NotImplementedError(f"{type(self).__name__} has no zero()")

    def count(self, state: dict[str, Any], predictions: Any, targets: Any) -> None:
        """Add the samples of a batch to a state."""
        raise NotImplementedError(f"{type(self).__name__} has no count()")

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return the metrics of a state."""
        raise NotImplementedError(f"{type(self).__name__} has no result()")

    def reset(self) -> None:
        """Reset the state."""
        self._state, self._global = self.zero(), False

    def update(self, outputs: Any, batch: Any) -> None:
        """Add a batch to the state.

        Args:
            outputs: the outputs of the model for it.
            batch: the batch, with the targets. Both are cut to the samples that count.
        """
        predictions, targets = self._select(outputs, batch)
        self._global |= isinstance(predictions, flow.Tensor) and predictions.is_global
        self.count(self._state, predictions, targets)

    def compute(self) -> dict[str, float]:
        """Return the metrics of all batches since `reset`, on all processes; the state is kept."""
        state = self.zero()
        for part in self._parts():
            _merge(state, part)
        return {name: float(value) for name, value in self.result(state).items()}

    def _parts(self) -> Sequence[dict[str, Any]]:
        """Return the states of all processes; this one's, if it is of global tensors."""
        if self._global or env.get_world_size() == 1:
            return [self._state]
        found: list[Any] = [None] * env.get_world_size()
        distributed.all_gather_object(found, _encode_state(self._state))
        return [_decode_state(part, self.zero()) for part in found]


def _merge(state: dict[str, Any], other: dict[str, Any]) -> None:
    for name, value in other.items():
        if isinstance(value, ExactSum):
            state[name].merge(value)
        else:
            state[name] = state[name] + value  # whole numbers, arrays of them, and lists


def _encode_state(state: dict[str, Any]) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, ExactSum):
            return value.encode()
        return value.tolist() if isinstance(value, np.ndarray) else value

    return {name: plain(value) for name, value in state.items()}


def _decode_state(values: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    def restore_value(value: Any, zero: Any) -> Any:
        if isinstance(zero, ExactSum):
            return ExactSum.decode(value)
        return np.array(value, zero.dtype) if isinstance(zero, np.ndarray) else value

    return {name: restore_value(values[name], zero) for name, zero in like.items()}
