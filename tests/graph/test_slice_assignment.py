"""Assignments to parts of a global tensor in a graph: the split that the tensor came with, as in eager code."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn

X = np.arange(128, dtype=np.float32).reshape(8, 16)
FORMS = {
    "columns": (np.s_[:, :8], (8, 8)),
    "inner columns": (np.s_[:, 4:12], (8, 8)),
    "every second column": (np.s_[:, ::2], (8, 8)),
    "one column": (np.s_[:, 3], (8,)),
    "rows": (np.s_[:4], (4, 16)),
    "one row": (np.s_[2], (16,)),
    "listed rows": ([0, 2], (2, 16)),
    "a block": (np.s_[1:5, 2:10], (4, 8)),
}
PLACES = {"line": flow.placement("cpu", [0, 1, 2, 3]), "grid": flow.placement("cpu", [[0, 1], [2, 3]])}


class Assign(nn.Graph):
    def __init__(self, index):
        super().__init__()
        self.index = index

    def build(self, x, value):
        x = x.clone()
        x[self.index] = value
        return x


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("form", FORMS)
def test_assignment_keeps_the_split(form, dim, place):
    index, shape = FORMS[form]
    place, axes = PLACES[place], PLACES[place].ranks.ndim

    def laid(array):
        dims = [min(dim, array.ndim - 1)] + [0] * (axes - 1)
        return flow.tensor(array).to_global(place, [flow.sbp.split(d) for d in dims])

    x, value = laid(X), laid(-np.ones(shape, np.float32))
    graph = Assign(index)
    found = graph(x, value)
    wanted = X.copy()
    wanted[tuple(index) if isinstance(index, tuple) else index] = -1
    np.testing.assert_array_equal(found.numpy(), wanted)
    assert found.sbp == x.sbp
    # The tensor itself stays where it is: at most what is written, and what it covers, is moved.
    assert not any(tuple(b.shape) == X.shape and b.bytes for b in graph.program.plan.boxings)
