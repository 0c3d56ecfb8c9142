"""Lists and arrays as indices of global tensors, read and write: eager, in graphs and in compiled functions."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import DataDependentError

ARRAY = np.arange(48, dtype=np.float32).reshape(8, 6)
MASK = ARRAY % 3 == 0
INDICES = {
    "list": [5, 1],
    "negative": [-1, -2],
    "array": np.array([5, 1]),
    "int32": np.array([5, 1], np.int32),
    "range": range(3),
    "two lists": ([5, 1], [0, 2]),
    "nested": [[0, 1], [2, 3]],
    "mesh": np.ix_([0, 1], [2, 3]),
    "bools": [True, False] * 4,
    "bool array": ARRAY[:, 0] > 10,
    "mask": MASK,
    "bytes": np.array([1, 0] * 4, np.uint8),
    "slice and list": (slice(1, 5), [0, 3]),
    "empty": [],
    "None and list": (None, [1, 2]),
    "ellipsis and list": (..., [1, 2]),
    "list and int": ([1, 2], 3),
    "numbers of NumPy": [np.int64(1), np.int64(3)],
    "local tensor": flow.tensor([1, 2]),
}
LAYOUTS = {"split(0)": flow.sbp.split(0), "split(1)": flow.sbp.split(1), "broadcast": flow.sbp.broadcast}


def read(index):
    return lambda x: x[index]


def write(index, value):
    def run(x):
        x = x.clone()
        x[index] = value
        return x

    return run


CASES = {f"read {name}": read(index) for name, index in INDICES.items()}
CASES |= {f"write {name}": write(index, 2.5) for name, index in INDICES.items()}
CASES["write a list to a list"] = write([5, 1], [9.0] * 6)
CASES["write an array to a list"] = write([5, 1], np.ones(6, np.float32))
CASES["write a list to a slice"] = write(slice(0, 2), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


def compiled(function, how):
    class Step(nn.Graph):
        def build(self, x):
            return function(x)

    return {"eager": function, "graph": Step(), "compile": flow.compile(function)}[how]


@pytest.mark.parametrize("how", ["eager", "graph", "compile"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_lists_and_arrays_index_global_tensors(case, layout, how):
    x = flow.tensor(ARRAY).to_global(flow.placement("cpu", [0, 1, 2, 3]), LAYOUTS[layout])
    found = compiled(CASES[case], how)(x)
    np.testing.assert_array_equal(found.numpy(), CASES[case](flow.tensor(ARRAY)).numpy())


def test_tensor_as_mask_is_not_read_in_a_trace():
    """Its sizes would be those of one call."""
    x = flow.tensor(ARRAY).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    with pytest.raises(DataDependentError):
        flow.compile(lambda x, mask: x[mask])(x, flow.tensor(MASK).to_global(x.placement, flow.sbp.split(0)))


def test_mask_without_dims_is_a_bool():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for array in (x, x[0, 1]):
        for mask in (True, False):
            ours, theirs = flow.tensor(array), torch.tensor(array)
            found, wanted = ours[flow.tensor(mask)], theirs[torch.tensor(mask)]
            assert found.shape == wanted.shape and found.tolist() == wanted.tolist()
            ours[flow.tensor(mask)] = 7.0
            theirs[torch.tensor(mask)] = 7.0
            assert ours.tolist() == theirs.tolist()
