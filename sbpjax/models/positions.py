"""Sequence and context parallelism: hooks that split the positions of activations over ranks.

    Parallel(context=4)                  tokens come split(1) over context
    Parallel(tensor=4, sequence=True)    sums over tensor are scattered to split(1)

On the model is a hook through which its attention reads keys of other ranks; on each layer that writes the stream of
`(B, T, D)`, an embedding or the second matrix of a pair, one that splits the positions of its result. From there
layouts follow, as always: norms, residual sums and dropout are computed where their positions are, and the first matrix
of a pair gathers them over tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn.layers.attention import attention_across

from .parallel import CONTEXT_BY, Parallel


@dataclass(frozen=True)
class SplitAttention:
    """A hook of a model: how axes of its placement divide its attention.

    Attributes:
        across: for every axis the name of a strategy, or "".
        head_parts: how many ranks split the heads already.
    """

    across: tuple[str, ...]
    head_parts: int
    _open: list = field(default_factory=list, compare=False, repr=False)
    only_computes = True

    def before(self, module: nn.Module, args: tuple) -> None:
        """Begin."""
        scope = attention_across(self.across, self.head_parts)
        scope.__enter__()
        self._open.append(scope)

    def after(self, module: nn.Module, args: tuple, result: Any) -> None:
        """End; also if the model failed."""
        self._open.pop().__exit__(None, None, None)


@dataclass(frozen=True)
class SplitPositions:
    """A hook of a layer: the positions of its result `(B, T, D)` are split over axes.

    Attributes:
        axes: the mesh axes.

    Example:
        >>> from sbpjax.models.positions import SplitPositions
        >>> place, whole = flow.placement("cpu", [0, 1]), flow.sbp.broadcast
        >>> norm = flow.nn.LayerNorm(4).to_global(place, whole)
        >>> handle = norm.register_forward_hook(SplitPositions((0,)))
        >>> norm(flow.ones(1, 6, 4).to_global(place, whole)).sbp
        (sbpjax.sbp.split(dim=1),)
    """

    axes: tuple[int, ...]
    only_computes = True

    def __call__(self, module: nn.Module, args: tuple, result: flow.Tensor) -> flow.Tensor | None:
        """Return the result in that layout."""
        if result.ndim != 3 or not result.is_global or result.shape[1] == 1:
            return None
        layout = [flow.sbp.split(1) if a in self.axes else s for a, s in enumerate(result.sbp)]
        return result.to_global(sbp=layout)


def divide_positions(model: nn.Module, spec: Parallel, writers: list[nn.Module]) -> None:
    """Leave the hooks of a spec on a model; those of an earlier one go.

    Args:
        model: the model.
        spec: the mesh.
        writers: the layers that write the stream.
    """
    for module in model.modules():
        for table in (module._forward_pre_hooks, module._forward_hooks):
            for key in [
                k for k, (hook, *_) in table.items() if isinstance(_owner(hook), (SplitAttention, SplitPositions))
            ]:
                del table[key]
    if spec.context > 1:
        names = tuple(CONTEXT_BY[spec.context_by] if axis == "context" else "" for axis in spec.axes)
        hook = SplitAttention(names, spec.tensor if spec.context_by == "ulysses" else 1)
        model.register_forward_pre_hook(hook.before)
        model.register_forward_hook(hook.after, always_call=True)
    divided = {"context", "tensor"} if spec.sequence else {"context"}
    axes = tuple(a for a, axis in enumerate(spec.axes) if axis in divided)
    if axes:
        for module in writers:
            module.register_forward_hook(SplitPositions(axes))


def _owner(hook) -> Any:
    return getattr(hook, "__self__", hook)
