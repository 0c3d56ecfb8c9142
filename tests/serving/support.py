"""Repositories of small models."""

import sbpjax as flow
from sbpjax import nn


class Forward(nn.Graph):
    """The forward pass of a model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


def mlp():
    flow.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def exported(folder, name="mlp", version=1, dynamic=True, graph=None):
    """Export a model into a repository, and return it."""
    model = mlp()
    graph = Forward(model) if graph is None else graph
    graph.export(folder / name / str(version) / "model", flow.ones(2, 6), dynamic_batch=dynamic)
    return model
