"""Thread-local dispatch state, read on every op: grad mode, autocast, trace capture, default device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Mode(threading.local):
    """The switches of one thread, independent of another thread's ``no_grad`` or trace.

    Attributes:
        grad: whether ops on tensors that require grad are recorded.
        inference: whether `inference_mode` is on.
        abstract: whether new tensors have no data, see `_core.tensor.dispatch.abstract`.
        capture: called in a trace with a concrete global tensor that meets a tracer; returns its logical tracer. None
            boxes the tensor to broadcast, which makes it a constant of the trace.
        closure: called in a trace of `sbpjax.func` with a tensor that holds a tracer; returns the tracer to read.
        blocks: takes the calls of modules in a trace, see `sbpjax.graph.repeated_layers`; None elsewhere.
        auto: in a trace of auto parallelism, a `sbpjax.graph.auto.graph.Auto`: local tensors are logical values; else
            None.
        autocast: casts the inputs of ops, a `_core.tensor.amp.casting.Casting`; None while autocasting is off.
        everywhere: the default placement and sbp of new tensors, see `sbpjax.utils.global_view`; None elsewhere.
        device: the default device of new local tensors, see `sbpjax.set_default_device`; None elsewhere.
        touch: called in a trace with a tensor that is about to be written, see `_core.tracing.outside_writes`; None
            elsewhere.
        made: in a trace the list of weak references to the tensors that it makes, see
            `_core.tracing.escaped_tensors`; None elsewhere.
        inline: whether a trace inlines the parts that it would trace separately (equal layers, micro-batches).
        local_values: in a trace the tracers of local values that each process gives, by id; tensors that it makes
            itself are the same everywhere.
        walks: how many backward walks are under way.
        losses: takes the tensors that backwards start from, see `sbpjax.graph.step`; None elsewhere.
        ends: functions to call after the outermost backward walk, see `_core.tensor.tape.engine.register_end_callback`,
            or None.
        calls: whether recorded ops of a trace are calls of traces that are kept, see `_core.tensor.dispatch.op_calls`.
    """

    def __init__(self) -> None:
        self.grad = True
        self.inference = False
        self.abstract = False
        self.everywhere: tuple | None = None
        self.device: Any = None
        self.devices: list = []  # those of the ``with`` blocks around
        self.capture: Callable | None = None
        self.closure: Callable | None = None
        self.touch: Callable | None = None
        self.blocks: Any = None
        self.seed: Any = None
        self.auto: Any = None
        self.autocast: Any = None
        self.made: list | None = None
        self.inline = False
        self.local_values: dict[int, Any] = {}
        self.walks = 0
        self.losses: list | None = None
        self.ends: dict[Any, Callable] | None = None
        self.calls = False


mode = Mode()
