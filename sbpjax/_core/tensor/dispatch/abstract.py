"""`abstract`: meta tensors, with shape, dtype, placement and sbp but without data.

    with sbpjax.abstract():
        model = GPT(config)                                    # 70B parameters, no byte of them
    model.to_global(placement.topology("v5p:8x8x8", [64, 8]), sbp)
    step = sbpjax.compile(train, state=(model, optimizer))
    print(step.lower(tokens).compile().memory_analysis())

``device="meta"``, PyTorch's name for it, has the same effect, and so has every creation on a placement whose devices
do not exist here. Ops on abstract tensors give abstract results, planned but not run; initialisers leave them alone;
programs of them are traced, planned and compiled. Reading an element (`item`, `numpy`, a mask as an index, a run) is
an error.
"""

from __future__ import annotations

import jax

from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.context_exit import ContextExit, restore_last
from sbpjax.sbp.abstract import Abstract, absent, no_data, of_layout
from sbpjax.sbp.layout import Layout

from ..calls.op_errors import describe, translate
from ..handle.mode import mode
from ..handle.tensor import Tensor, wrap_any
from . import local


class abstract:
    """Make every new tensor of this thread abstract within the block.

    Inside a traced program it has no effect: a program makes its tensors when it runs.

    Example:
        >>> with sbpjax.abstract():
        ...     layer = sbpjax.nn.Linear(16384, 65536)
        >>> layer.weight.is_meta, layer.weight.shape
        (True, sbpjax.Size([65536, 16384]))
    """

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> abstract:
        self._before.append(mode.abstract)
        mode.abstract = True
        return self

    __exit__ = ContextExit(lambda self: restore_last(mode, "abstract", self._before))


def is_abstract(x: Tensor) -> bool:
    """Return whether a tensor has no data."""
    return x._array.__class__ is Abstract


def empty(shape: tuple[int, ...], dtype, placement=None, sbp=None) -> Tensor:
    """Return a tensor without data: local, or global on a placement in an nd-sbp."""
    if placement is None:
        return wrap_any(Abstract(shape, dtype))
    layout = Layout(placement, sbp, shape, dtype)
    return wrap_any(of_layout(layout), layout)._mark_requested_sum()


@hide_mesh
def create_abstract(fn, static: tuple, inputs, placement=None, sbp=None) -> Tensor:
    """Return the abstract tensor that a creation function would make."""
    keywords = dict(static)
    # Answered without `eval_shape`: a model of 48 layers makes a thousand such tensors.
    if "shape" in keywords and "dtype" in keywords:
        return empty(keywords["shape"], keywords["dtype"], placement, sbp)
    out = jax.eval_shape(lambda *xs: fn(*xs, **keywords), *inputs)
    return empty(out.shape, out.dtype, placement, sbp)


@hide_mesh
def run(op, inputs: tuple, out_sbps=None):
    """Run a local op with an input without data: its results have none either."""
    arrays, recording = local.arrays_of(inputs)
    try:
        out = op.without_data(arrays)
    except Exception as error:
        raise translate(error, op, tuple(arrays)) from None
    outs = (wrap_any(out),) if isinstance(out, Abstract) else tuple([wrap_any(o) for o in out])
    if recording:
        local.record_local_op(op, inputs, arrays, outs)
    return outs[0] if isinstance(out, Abstract) else outs


def missing_data_error(operation: str, x: Tensor):
    """Return the error for a reader of an abstract tensor's elements."""
    return no_data(operation, describe(x))


def check_runnable(operation: str, placement, tensors) -> None:
    """Raise if a program would run on tensors without data, or on devices that do not exist here.

    Raises:
        AbstractError: it would.
    """
    lacking = [x for x in tensors if x.is_meta]
    if not lacking and (placement is None or placement.is_present):
        return
    if placement is not None and not placement.is_present:
        raise absent(f"running {operation}", f"{len(lacking)} abstract tensors", placement)
    raise missing_data_error(f"running {operation}", lacking[0])
