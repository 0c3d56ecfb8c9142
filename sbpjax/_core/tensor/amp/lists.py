"""Op lists of autocasting: lower precision, float32, or the widest dtype of the inputs.

    matmul(float32, float32)        lower     → both to bfloat16, the result is bfloat16
    softmax(bfloat16)               float32   → to float32, the result is float32
    addcmul(bfloat16, float32, …)   widest    → all to float32
    relu(bfloat16)                  in none   → as it comes

Two sets follow PyTorch on each kind of device: `CPU` keeps float32 for losses and for ops that its CPU kernels lack,
`ACCELERATOR` also for sums of many terms, exponentials and norms. The table of ops declares them (`amp=`), by
the name of the op's function in `_core.ops`. Lists are values: `CastPolicy.changed` returns new ones, for
`autocast(lists=...)` and `GraphConfig.enable_amp(lists=...)`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from dataclasses import dataclass

from sbpjax._core.tensor.dispatch.op import CASTS
from sbpjax.errors import OpValueError

LOWER, FLOAT32, WIDEST = "lower", "float32", "widest"

_OPS = """layers.activation arithmetic shapes.arrange attention.attention losses.class_loss compare conv.conv
 reductions.cumulative linalg.einsum elementwise layers.embedding shapes.gather grouped_matmul.primitive
 shapes.index linalg.products losses.loss linalg.matrix layers.norm conv.pool reductions.reduce conv.resize
 layers.rnn powers reductions.sort shapes.view""".split()


@dataclass(frozen=True)
class CastPolicy:
    """The autocast policy of each op.

    Attributes:
        lower: ops whose floating inputs are cast to the lower precision.
        float32: ops whose inputs of lower precision are cast to float32.
        widest: ops whose inputs are cast to the widest dtype among them.
    """

    lower: frozenset[str]
    float32: frozenset[str]
    widest: frozenset[str]

    @functools.cached_property
    def policies(self) -> dict[str, str]:
        """The policy of each op that has one."""
        kinds = ((LOWER, self.lower), (FLOAT32, self.float32), (WIDEST, self.widest))
        return {name: kind for kind, names in kinds for name in names}

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.lower, self.float32, self.widest))

    def changed(
        self,
        *,
        lower: Iterable[str] = (),
        float32: Iterable[str] = (),
        widest: Iterable[str] = (),
        as_it_comes: Iterable[str] = (),
    ) -> CastPolicy:
        """Return lists with some ops moved to other lists.

        Args:
            lower: ops to run in the lower precision.
            float32: ops to run in float32.
            widest: ops to run in the widest dtype of their inputs.
            as_it_comes: ops to leave alone.

        Raises:
            ValueError: there is no op of that name, or it is named twice.

        Example:
            >>> lists = sbpjax._core.tensor.amp.lists.ACCELERATOR.changed(lower=["softmax"])
            >>> with sbpjax.autocast("cuda", dtype=sbpjax.bfloat16, lists=lists): ...
        """
        requested = [set(lower), set(float32), set(widest), set(as_it_comes)]
        moved = set().union(*requested)
        for name in sorted(moved):
            times = sum(name in names for names in requested)
            if times > 1:
                raise _wrong(name, f"named {times} times", "an op is in one list")
            if not is_op(name):
                raise _wrong(name, "no op of this name", "a name is that of a function in sbpjax._core.ops")
        lower, float32, widest, _ = requested
        return CastPolicy(*(frozenset((own - moved) | new) for own, new in
                       ((self.lower, lower), (self.float32, float32), (self.widest, widest))))  # fmt: skip


def is_op(name: str) -> bool:
    """Return whether `_core.ops` has an op of a name."""
    return any(callable(getattr(importlib.import_module(f"sbpjax._core.ops.{m}"), name, None)) for m in _OPS)


def _wrong(name: str, seen: str, rule: str) -> OpValueError:
    return OpValueError(f"Lists.changed({name!r})", seen, rule, 'Lists.changed(lower=["softmax"])')


def _table_policy(kind: str) -> CastPolicy:
    """Return the lists that the table of ops gives a kind of device: ``"cpu"`` or ``"accelerator"``."""
    found: dict[str, set[str]] = {LOWER: set(), FLOAT32: set(), WIDEST: set()}
    for name, category in CASTS.items():
        for part in category.split():
            where, _, policy = part.rpartition(":")
            if where in ("", kind):
                found[policy].add(name)
    return CastPolicy(*map(frozenset, found.values()))


CPU, ACCELERATOR = _table_policy("cpu"), _table_policy("accelerator")


def lists_of(device_type: str) -> CastPolicy:
    """Return the lists that a device type has by default: `CPU` for ``"cpu"``, else `ACCELERATOR`."""
    return CPU if device_type == "cpu" else ACCELERATOR
