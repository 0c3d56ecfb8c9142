"""Placeholders of PyTorch's sharded tensors (DTensor, FSDP, device meshes); errors name the replacement.

Model libraries check ``isinstance(x, DTensor)`` everywhere; the answer here is always no, since a sharded tensor is a
`Tensor` with a placement and an sbp.
"""

from __future__ import annotations

from .absent import make_absent_getattr


class Placement:
    """PyTorch's name for an sbp of one axis; libraries make them as default arguments."""

    def __init__(self, *args) -> None:
        self._args = args

    def __eq__(self, other) -> bool:
        return type(other) is type(self) and other._args == self._args

    def __hash__(self) -> int:
        return hash((type(self), self._args))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._args))})"


class Shard(Placement):
    """PyTorch's name of ``sbpjax.sbp.split(dim)``."""

    @property
    def dim(self) -> int:
        """The dim that is split."""
        return self._args[0]


class Replicate(Placement):
    """PyTorch's name of ``sbpjax.sbp.broadcast``."""


class Partial(Placement):
    """PyTorch's name of ``sbpjax.sbp.partial_sum``."""


class _StridedShard(Shard):
    """Nothing is of this class."""


__getattr__ = make_absent_getattr(
    "torch.distributed",
    "sharded tensors are global tensors here: a placement and an sbp",
    "x.to_global(placement, sbp)",
)
