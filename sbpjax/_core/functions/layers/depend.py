"""`depend`: execution order between independent tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.dispatch import apply


def _after(x: Any, *others: Any) -> Any:
    """Return x as it is, computed after the others; the gradient is x's alone."""

    @jax.custom_jvp
    def hold(value):
        return jax.lax.optimization_barrier((value, *[jax.lax.stop_gradient(o) for o in others]))[0]

    hold.defjvp(lambda primals, tangents: (hold(*primals), tangents[0]))
    return hold(x)


def depend(input: Tensor, depend: Tensor | Sequence[Tensor]) -> Tensor:
    """Return `input` unchanged, in a compiled program computed after other tensors.

    Args:
        input: any tensor.
        depend: the tensors computed first, one or several.
    """
    others = (depend,) if isinstance(depend, Tensor) else tuple(depend)
    return apply(_after, input, *[o.detach() for o in others])
