"""Master weights: with AMP, parameters of lower precision get a float32 copy in their optimizer's state.

Float32 parameters are their own masters: their casts are part of the program. A parameter that is bfloat16 or float16
itself would lose every update smaller than 1/256 of it, so its optimizer keeps the exact value
(`Optimizer.use_master_weights`). A group that sets ``"master_weights"`` itself is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sbpjax.optim import run
from sbpjax.optim.optimizer import Optimizer


def keep_masters(optimizers: Sequence[Optimizer]) -> Callable[[], None]:
    """Switch master weights on for groups with a parameter of lower precision; return a function that reverts it."""
    changed = []
    for group in (group for optimizer in optimizers for group in optimizer.param_groups):
        if "master_weights" not in group and any(run.is_low(p.dtype) for p in group["params"]):
            group["master_weights"] = True
            changed.append(group)

    def undo() -> None:
        for group in changed:
            del group["master_weights"]

    return undo
