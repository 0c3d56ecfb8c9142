"""Graphs that many tests need: a function as a graph, and a step of training.

Plain(lambda graph, x: graph.model(x) + 1, model=nn.Linear(4, 2))(x)
graph_of(lambda model, x: model(x) + 1, model)(x)

class Step(Train):
    loss = staticmethod(cross_entropy)

Step(model, optimizer)(x, y)
"""

from __future__ import annotations

from sbpjax import nn
from sbpjax.nn import functional as F


class Plain(nn.Graph):
    """Runs a function as build; the function gets the graph first."""

    def __init__(self, fn, **attributes):
        super().__init__()
        for name, value in attributes.items():
            setattr(self, name, value)
        object.__setattr__(self, "fn", fn)

    def build(self, *args, **kwargs):
        return self.fn(self, *args, **kwargs)


def graph_of(fn, module=None):
    """Return a function of tensors as a graph; of a module and tensors, if there is a module."""
    if module is None:
        return Plain(lambda graph, *inputs: fn(*inputs))
    return Plain(lambda graph, *inputs: fn(graph.module, *inputs), module=module)


def mean_square(model, x):
    """Return the mean of what a model gives, squared."""
    return model(x).square().mean()


def cross_entropy(model, x, y):
    """Return the cross entropy of a model's logits."""
    return F.cross_entropy(model(x), y)


class Train(nn.Graph):
    """A step of training.

    Args:
        model: what is trained.
        optimizers: what trains it.
        schedule: of the optimizers.
        accumulate: micro-batches of a step.
        scaler: of the loss.

    Attributes:
        loss: the loss of a model and the inputs.
    """

    loss = staticmethod(mean_square)

    def __init__(self, model, *optimizers, schedule=None, accumulate=1, scaler=None):
        super().__init__()
        self.model = model
        for optimizer in optimizers:
            self.add_optimizer(optimizer, lr_sch=schedule)
        self.config.set_gradient_accumulation_steps(accumulate)
        self.set_grad_scaler(scaler)

    def build(self, *inputs):
        loss = self.loss(self.model, *inputs)
        loss.backward()
        return loss
