"""Batch normalisation layers: `BatchNorm1d` to `3d`, synchronised and fused variants.

Under ``split(0)`` of the batch the statistics are those of the whole logical batch: synchronised batch normalisation is
the only kind here, since values do not depend on the layout.
"""

from __future__ import annotations

import functools
from typing import Any

from sbpjax._core import naming
from sbpjax._core.functions import nn as F
from sbpjax._core.functions.layers.norm import batch_norm_over_ranks
from sbpjax._core.functions.table.texts import InheritedDocstring
from sbpjax._core.ops.dims import fail
from sbpjax._core.runtime import processes
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.storage.payload import is_array, make_unshared_leaf, put_all_from
from sbpjax._core.tensor.tape.function import ACROSS
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.nn import init
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import parameter


class _NormBase(Module):
    """Base of batch norm and instance norm: scale, shift and running statistics of every channel.

    Args:
        num_features: the number of channels C.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None averages over all batches.
        affine: whether there are `weight` and `bias`.
        track_running_stats: keep running statistics, and use them in evaluation mode.
        device: where the tensors are made.
        dtype: their dtype.
        bias: whether there is a `bias`.
    """

    _version = 2
    _dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = parameter(num_features, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, made)
        for name in ("running_mean", "running_var"):
            made = creation.empty(num_features, device=device, dtype=dtype) if track_running_stats else None
            self.register_buffer(name, made)
        count = creation.zeros((), dtype=dtypes.int64, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Set `weight` to one and `bias` to zero, and reset the running statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def extra_repr(self) -> str:
        bias = "" if naming.is_oneflow() else f"bias={self.bias is not None}, "
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"{bias}track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    """Normalise every channel over the batch and all dims after the channels, then scale and shift.

    Args:
        num_features: the number of channels C.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None averages over all batches.
        affine: whether there are `weight` and `bias`.
        track_running_stats: keep running statistics, and use them in evaluation mode.
        device: where the tensors are made.
        dtype: their dtype.
        bias: whether there is a `bias`.
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in self._dims:
            wanted = " or ".join(f"{d}D" for d in self._dims)
            fail(
                "value",
                f"{type(self).__name__}(x)",
                f"shape {list(input.shape)}",
                f"expected {wanted} input (got {input.ndim}D input)",
                "x.unsqueeze(0) adds a batch dim; BatchNorm1d, 2d and 3d differ in the dims they take",
            )
        momentum: Any = 0.0 if self.momentum is None else self.momentum
        count = self.num_batches_tracked if self.training else None
        tracked = not self.training or self.track_running_stats
        running = (self.running_mean, self.running_var) if tracked else (None, None)
        if count is None:
            return self._normalise(input, *running, momentum)
        written = [t for t in (*running, count) if t is not None]
        # An interrupt finds all statistics of this batch, or none.
        at_once = mode.touch is None and all(map(is_array, written))
        mean, var, count = (make_unshared_leaf(t) if at_once and t is not None else t for t in (*running, count))
        with no_grad():
            count.add_(1)
        if self.momentum is None:
            momentum = 1.0 / count.to(self.running_mean.dtype)
        out = self._normalise(input, mean, var, momentum)
        if at_once:
            put_all_from(written, [t for t in (mean, var, count) if t is not None])
        return out

    def _normalise(self, input: Tensor, mean: Tensor | None, var: Tensor | None, momentum: float | Tensor) -> Tensor:
        by_batch = self.training or self.running_mean is None
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of `(N, C)` or `(N, C, L)`.

    Returns:
        Any sbp: the statistics are those of the whole logical batch, a split batch costs all-reduces of them.

    Example:
        >>> flow.nn.BatchNorm1d(1, eps=0.0)(flow.tensor([[1.0], [3.0]])).tolist()
        [[-1.0], [1.0]]
    """

    __doc__ = InheritedDocstring(__doc__, _BatchNorm)
    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of `(N, C, H, W)`.

    Returns:
        Any sbp: the statistics are those of the whole logical batch, a split batch costs all-reduces of them.

    Example:
        >>> x = flow.ones(2, 1, 2, 2).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> layer = flow.nn.BatchNorm2d(1).to_global(x.placement, flow.sbp.broadcast)
        >>> layer(x).sbp, layer.running_mean.tolist()
        ((sbpjax.sbp.split(dim=0),), [0.10000000149011612])
    """

    __doc__ = InheritedDocstring(__doc__, _BatchNorm)
    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of `(N, C, D, H, W)`."""

    __doc__ = InheritedDocstring(__doc__, _BatchNorm)
    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of `(N, C, ...)` over the batches of all ranks.

    Of a global tensor the statistics are those of the whole logical batch, as of every batch norm here. In training on
    local tensors, each rank's own batch, the ranks gather their means, variances and counts, which may differ or be 0:
    one collective of 2C + 1 numbers in forward and one in backward. Gradients are those of the sum of the ranks'
    losses; `DistributedDataParallel` averages them.

    Args:
        num_features: the number of channels C.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None averages over all batches.
        affine: whether there are `weight` and `bias`.
        track_running_stats: keep running statistics, and use them in evaluation mode.
        process_group: the ranks whose local batches are one; all by default.
        device: where the tensors are made.
        dtype: their dtype.

    Raises:
        DistributedError: local tensors of several ranks in a traced program, which communicates through layouts.
    """

    _dims = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def _normalise(self, input: Tensor, mean: Tensor | None, var: Tensor | None, momentum: float | Tensor) -> Tensor:
        # A layer that normalises by the batch in evaluation takes each rank's own, as in PyTorch.
        if not self.training or input.is_global or input.is_meta:
            return super()._normalise(input, mean, var, momentum)
        world = processes.current()
        ranks = range(world.size) if self.process_group is None else self.process_group.ranks
        if len(ranks) < 2 or world.rank not in ranks:
            return super()._normalise(input, mean, var, momentum)
        gather = functools.partial(
            ACROSS["all_gather"], group=self.process_group, operation=f"{type(self).__name__}(x)"
        )
        return batch_norm_over_ranks(input, mean, var, self.weight, self.bias, momentum, self.eps, gather)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return a model with every batch norm as a `SyncBatchNorm` on the same tensors.

        Args:
            module: the model; children are replaced in place.
            process_group: kept on the new layers.
        """
        made = module
        if isinstance(module, _BatchNorm) and hasattr(module, "cls_to_become"):
            # A lazy layer becomes one at its first call.
            module.cls_to_become, module.process_group = cls, process_group
        elif isinstance(module, _BatchNorm):
            made = (_SyncFusedBatchNorm if isinstance(module, _FusedBatchNorm) else cls)(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in list(module.named_children()):
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _FusedBatchNorm(_BatchNorm):
    """Batch normalisation, then an optional sum with another tensor, then relu: one compiled step in a graph.

    Args:
        num_features: the number of channels C.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics.
        affine: whether there are `weight` and `bias`.
        track_running_stats: keep running statistics, and use them in evaluation mode.
    """

    def forward(self, input: Tensor, addend: Tensor | None = None) -> Tensor:
        """Return relu(batch_norm(input) + addend)."""
        out = super().forward(input)
        return F.relu(out if addend is None else out + addend)


class FusedBatchNorm1d(_FusedBatchNorm):
    """Fused batch normalisation and relu of `(N, C)` or `(N, C, L)`."""

    __doc__ = InheritedDocstring(__doc__, _FusedBatchNorm)
    _dims = (2, 3)


class FusedBatchNorm2d(_FusedBatchNorm):
    """Fused batch normalisation and relu of `(N, C, H, W)`."""

    __doc__ = InheritedDocstring(__doc__, _FusedBatchNorm)
    _dims = (4,)


class FusedBatchNorm3d(_FusedBatchNorm):
    """Fused batch normalisation and relu of `(N, C, D, H, W)`."""

    __doc__ = InheritedDocstring(__doc__, _FusedBatchNorm)
    _dims = (5,)


class _SyncFusedBatchNorm(_FusedBatchNorm, SyncBatchNorm):
    """A fused batch norm over the batches of all ranks: into this `SyncBatchNorm.convert_sync_batchnorm` makes one."""
