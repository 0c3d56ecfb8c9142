"""The one mutable object that dispatch reads on every op: is the tape recording, and who lifts constants in a trace."""

from __future__ import annotations

import threading


class Mode(threading.local):
    """The switches of one thread; another thread's ``no_grad`` or trace is none of its business.

    Attributes:
        grad: whether ops on tensors that require grad are recorded.
        inference: whether `inference_mode` is on.
        abstract: whether new tensors have no data, see `sbpjax.tensor.abstract`.
        lift: called in a trace with a concrete tensor that meets a tracer; returns its logical tracer. None makes the
            tensor a constant of the trace.
        seed: what `backward` multiplies the gradients by with which it starts; None for 1.
        call: called in a trace with a module and its arguments in place of the module's own call; None elsewhere.
        blocks: takes the calls of modules in a trace, see `sbpjax.graph.blocks`; None elsewhere.
        touch: called in a trace with a tensor that is about to be written, see `sbpjax.graph.watch`; None elsewhere.
    """

    def __init__(self) -> None:
        self.grad = True
        self.inference = False
        self.abstract = False
        self.lift = self.touch = self.blocks = None


mode = Mode()
