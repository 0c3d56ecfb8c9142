"""Arrays of other packages: DLPack with any strides, NumPy arrays written into parameters, integer masks."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.errors import InplaceError, OpTypeError

BASE = torch.arange(24.0).reshape(4, 6)
STRIDED = {
    "transposed": lambda x: x.T,
    "every second column": lambda x: x[:, ::2],
    "every second row": lambda x: x[::2],
    "a window": lambda x: x[1:3, 2:5],
    "expanded": lambda x: x.expand(2, 4, 6),
    "a diagonal": lambda x: x.diagonal(),
}


@pytest.mark.parametrize("view", STRIDED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16])
def test_from_dlpack_takes_any_strides(view, dtype):
    x = STRIDED[view](BASE.to(dtype))
    found = flow.from_dlpack(x)
    assert found.dtype == getattr(flow, str(dtype)[6:]) and found.tolist() == x.tolist()


def test_from_dlpack_takes_reversed_arrays_and_capsules():
    assert flow.from_dlpack(BASE.numpy()[::-1, ::-2]).tolist() == BASE.numpy()[::-1, ::-2].tolist()
    capsule = torch.utils.dlpack.to_dlpack(BASE[:, ::3])
    assert flow.from_dlpack(capsule).tolist() == BASE[:, ::3].tolist()


@pytest.mark.parametrize("view", STRIDED)
def test_dlpack_of_a_strided_view_is_its_value(view):
    x = STRIDED[view](flow.tensor(BASE.numpy()))
    assert np.from_dlpack(x).tolist() == STRIDED[view](BASE).tolist()


@pytest.mark.parametrize("sbp", [None, flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_copy_of_an_array_into_a_parameter_needs_no_no_grad(sbp, dtype):
    model = flow.nn.Linear(4, 6)
    if sbp is not None:
        model.to_global(flow.placement("cpu", [0, 1]), sbp if sbp != flow.sbp.split(1) else flow.sbp.split(0))
    weight, values = model.weight, np.arange(24, dtype=dtype).reshape(6, 4)
    weight.copy_(values)
    assert weight.numpy().tolist() == values.tolist() and weight.is_leaf and weight.requires_grad
    x = flow.ones(2, 4) if sbp is None else flow.ones(2, 4, placement=weight.placement, sbp=flow.sbp.broadcast)
    model(x).sum().backward()
    assert weight.grad.numpy().tolist() == np.full((6, 4), 2.0).tolist()


def test_copy_of_a_tensor_into_a_parameter_needs_no_grad():
    with pytest.raises(InplaceError, match="a leaf Tensor that requires grad"):
        flow.nn.Linear(2, 2).weight.copy_(flow.ones(2, 2))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "bool"])
def test_masked_fill_counts_all_but_zero(dtype):
    mask = flow.tensor([2, 0, 1]).to(getattr(flow, dtype))
    assert flow.zeros(3).masked_fill(mask, 7.0).tolist() == [7.0, 0.0, 7.0]
    assert flow.zeros(3).masked_fill_(mask, 7.0).tolist() == [7.0, 0.0, 7.0]


def test_masked_fill_refuses_a_mask_of_floats():
    with pytest.raises(OpTypeError, match="bool, or of integers"):
        flow.zeros(3).masked_fill(flow.ones(3), 7.0)
