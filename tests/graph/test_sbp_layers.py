"""Transformer layers with sbps inside, in OneFlow's idiom: the same losses in every layout as on one device.

`models_sbp` runs unchanged on OneFlow 0.9.0 (with ``import oneflow as flow``), which gives `LOSSES` on one rank, and on
four ranks within 1e-6 in the layouts where it runs: eager 2-D, eager tensor parallel.
"""

import numpy as np
import pytest

from sbpjax import nn
from tests.models_sbp import GPT, B, Layout, S, batch, filled, losses
from tests.support.graphs import graph_of

LOSSES = [2.849897861480713, 2.7842869758605957, 2.732038974761963]
TOLERANCE = 2e-6  # of sums in another order

LAYOUTS = {
    "one": Layout([[0]]),
    "data": Layout([[0, 1, 2, 3]]),
    "tensor": Layout([[0, 1, 2, 3]], "tensor"),
    "grid": Layout([[[0, 1], [2, 3]]]),
    "stages": Layout([[0, 1], [2, 3]], "tensor"),
    "stages of grids": Layout([[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
}


@pytest.mark.parametrize("place", LAYOUTS)
def test_a_graph_gives_the_losses_of_oneflow(place):
    np.testing.assert_allclose(losses(LAYOUTS[place], graph=True), LOSSES, rtol=TOLERANCE)


@pytest.mark.parametrize("place", LAYOUTS)
def test_eager_code_gives_the_losses_of_oneflow(place):
    np.testing.assert_allclose(losses(LAYOUTS[place], graph=False), LOSSES, rtol=TOLERANCE)


def test_checkpointed_layers_in_micro_batches_give_them_too():
    """The loss of a step is that of its micro-batches, one behind the other."""
    found = losses(LAYOUTS["grid"], graph=True, steps=2, checkpoint=True)
    np.testing.assert_allclose(found, LOSSES, rtol=TOLERANCE)


def test_the_layers_keep_their_parameters_as_they_were_made():
    """Sbps inside a graph's layers are those outside, and equal layers are traced once."""
    layout, seen = LAYOUTS["grid"], []

    class Told(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x, mask):
            seen.append((x.placement, len(x.sbp), self.inner.mlp.up.weight.sbp, self.inner.mlp.down.weight.sbp))
            return self.inner(x, mask)

    model = filled(GPT(layout, layers=3))
    model.layers = nn.ModuleList([Told(layer) for layer in model.layers])

    graph_of(lambda gpt, ids, labels: gpt(ids, labels), model)(*batch(layout))
    assert set(seen) == {(layout.place(0), 2, (B, S(1)), (B, S(0)))}
    assert len(seen) <= 2
