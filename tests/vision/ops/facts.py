"""Comparison with what `record.py` recorded of torchvision: values, and gradients of a weighted sum."""

import numpy as np

import sbpjax as flow
from tests.vision.ops.record import DATA, inputs, weights

TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}
GIVEN = inputs()
with np.load(DATA) as file:
    FACTS = dict(file)


def agrees(name, of, *names, inside=False):
    """Compare values and gradients, eagerly or from an nn.Graph."""
    leaves = [flow.nn.Parameter(flow.tensor(GIVEN[one])) for one in names]
    out = _in_graph(of, leaves) if inside else of(*leaves)
    (out * flow.tensor(weights(tuple(out.shape)))).sum().backward() if not inside else None
    np.testing.assert_allclose(out.detach().numpy(), FACTS[name], **TOLERANCE)
    for one, leaf in zip(names if not inside else (), leaves, strict=False):
        np.testing.assert_allclose(leaf.grad.numpy(), FACTS[f"{name}/{one}"], **TOLERANCE)


def _in_graph(of, leaves):
    class Graph(flow.nn.Graph):
        def build(self, *tensors):
            return of(*tensors)

    return Graph()(*[leaf.detach() for leaf in leaves])
