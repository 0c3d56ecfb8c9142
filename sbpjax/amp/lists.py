"""Lists: which ops autocasting runs in the lower precision, which in float32, which in the widest dtype they are given.

    matmul(float32, float32)        lower     → both to bfloat16, the result is bfloat16
    softmax(bfloat16)               float32   → to float32, the result is float32
    addcmul(bfloat16, float32, …)   widest    → all to float32
    relu(bfloat16)                  in none   → as it comes

Two sets are given, by what PyTorch does on each kind of device: `CPU` keeps float32 for losses and for what its CPU
kernels lack, `ACCELERATOR` also for sums of many terms, exponentials and norms. A name is that of the op's function in
`sbpjax.ops`. Lists are values: `Lists.changed` gives other ones, for `autocast(lists=...)` and
`GraphConfig.enable_amp(lists=...)`.

Tested by `tests/amp/test_autocast.py`, op by op against what PyTorch returns.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from dataclasses import dataclass

from sbpjax.errors import OpValueError, message

LOWER, FLOAT32, WIDEST = "lower", "float32", "widest"

_OPS = """activation arithmetic arrange attention compare conv cumulative einsum elementwise embedding gather index
 linalg loss matrix norm pool reduce resize rnn sort view""".split()


@dataclass(frozen=True)
class Lists:
    """What autocasting does with each op.

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
    ) -> Lists:
        """Return lists with some ops elsewhere.

        Args:
            lower: ops to run in the lower precision.
            float32: ops to run in float32.
            widest: ops to run in the widest dtype of their inputs.
            as_it_comes: ops to leave alone.

        Raises:
            ValueError: there is no op of that name, or it is named twice.

        Example:
            >>> lists = sbpjax.amp.lists.ACCELERATOR.changed(lower=["softmax"])
            >>> with sbpjax.autocast("cuda", dtype=sbpjax.bfloat16, lists=lists): ...
        """
        asked = [set(lower), set(float32), set(widest), set(as_it_comes)]
        moved = set().union(*asked)
        for name in sorted(moved):
            times = sum(name in names for names in asked)
            if times > 1:
                raise _wrong(name, f"named {times} times", "an op is in one list")
            if not is_op(name):
                raise _wrong(name, "no op of this name", "a name is that of a function in sbpjax.ops")
        lower, float32, widest, _ = asked
        return Lists(*(frozenset((own - moved) | new) for own, new in
                       ((self.lower, lower), (self.float32, float32), (self.widest, widest))))  # fmt: skip


def is_op(name: str) -> bool:
    """Return whether `sbpjax.ops` has an op of a name."""
    return any(callable(getattr(importlib.import_module(f"sbpjax.ops.{m}"), name, None)) for m in _OPS)


def _wrong(name: str, seen: str, rule: str) -> OpValueError:
    return OpValueError(message(f"Lists.changed({name!r})", seen, rule, 'Lists.changed(lower=["softmax"])'))


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PRODUCTS = """matmul mm bmm addmm addbmm baddbmm linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d
 conv_transpose3d scaled_dot_product_attention prelu einsum recurrent cell"""

_LOSSES = """binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy
 hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss nll_loss smooth_l1_loss soft_margin_loss
 sparse_softmax_cross_entropy triplet_margin_loss"""

CPU = Lists(
    lower=_names(f"{_PRODUCTS} tensordot"),
    float32=_names(f"{_LOSSES} adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d max_pool3d prod quantile trace"),
    widest=_names("cat stack index_copy hstack vstack dstack column_stack addr"),
)

ACCELERATOR = Lists(
    lower=_names(f"{_PRODUCTS} addmv addr mv"),
    float32=_names(
        f"""{_LOSSES} acos asin cosh erfinv exp expm1 log log10 log1p log2 pow pow_scalar rpow_scalar reciprocal rsqrt
        sinh tan cumprod cumsum prod sum logsumexp softmax softmin log_softmax softplus norm normalize layer_norm
        group_norm rms_norm cosine_similarity pairwise_distance"""
    ),
    widest=_names(
        """addcdiv addcmul atan2 bilinear cross dot scatter_add tensordot cat stack hstack vstack dstack column_stack
        where"""
    ),
)


def lists_of(device_type: str) -> Lists:
    """Return the lists that a device type has by default: `CPU` for ``"cpu"``, else `ACCELERATOR`."""
    return CPU if device_type == "cpu" else ACCELERATOR
