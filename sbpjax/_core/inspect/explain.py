"""`explain` and `visualize` on tensors: the plan of a function before it runs, the blocks of each rank."""

from __future__ import annotations

from collections.abc import Callable

from sbpjax._core.tensor import Tensor
from sbpjax.errors import MixedTensorError
from sbpjax.graph.program.compile import Compiled

from .layout_picture import Picture
from .layout_picture import visualize as picture_of
from .plan_table import Explanation


def explain(fn: Callable, *args, state=(), **kwargs) -> Explanation:
    """Return the plan of a function of global tensors: a strategy per equation, and every boxing with its bytes.

    Nothing runs. The function is planned as one program, as `compile` would.

    Args:
        fn: a function of tensors, an op such as ``sbpjax.matmul``, or a compiled function.
        *args: its arguments.
        state: modules, optimizers and tensors that it changes; a compiled function knows its own.
        **kwargs: its keyword arguments.

    Returns:
        An `Explanation`: print it, or show it in a notebook.

    Raises:
        MixedTensorError: no argument and no state is global.

    Example:
        >>> print(explain(sbpjax.matmul, x, w))
    """
    compiled = fn if isinstance(fn, Compiled) else Compiled(fn, state, "spmd")
    name = getattr(fn, "__name__", type(fn).__name__)
    plan = compiled.plan(*args, **kwargs)
    if plan is None:
        raise MixedTensorError(
            f"explain({name}, ...)",
            "no global tensor among the arguments and the state",
            "a plan is about tensors on a placement; a program on one device moves nothing",
            "x.to_global(placement, sbp)",
        )
    return Explanation(plan, name, compiled.placement(*args, **kwargs).axis_names)


def visualize(x: Tensor) -> Picture:
    """Return a picture of which part of a global tensor each rank holds, as text and as SVG.

    Args:
        x: a global tensor of any shape and nd-sbp.

    Raises:
        MixedTensorError: the tensor is local.
    """
    if isinstance(x, Tensor) and x.layout is None:
        raise MixedTensorError(
            "visualize(x)",
            f"a local tensor of shape {tuple(x.shape)}",
            "a local tensor is whole on one device",
            "x.to_global(placement, sbp)",
        )
    return picture_of(x)
