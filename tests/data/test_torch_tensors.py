"""Tensors from and to PyTorch, and the names that are only other names."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.errors import NotInJaxError
from sbpjax.utils.tensor import from_torch, to_torch


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool", "float16", "bfloat16", "complex64"])
def test_there_and_back(dtype):
    source = torch.tensor([[0.0, 1, 2], [3, 4, 5]]).to(getattr(torch, dtype)).t()
    ours = from_torch(source)
    assert ours.shape == (3, 2) and ours.dtype == getattr(flow, dtype)
    back = to_torch(ours)
    assert back.dtype == source.dtype and torch.equal(back, source)
    back[0] = 1
    assert torch.equal(to_torch(ours), source)


def test_gradients_stay_behind_and_global_tensors_come_whole():
    assert not from_torch(torch.ones(2, requires_grad=True)).requires_grad
    x = flow.arange(4.0, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))
    np.testing.assert_array_equal(to_torch(x).numpy(), np.arange(4.0))
    assert from_torch(torch.ones(0, 2)).shape == (0, 2)
    with pytest.raises(TypeError, match="x is a torch.Tensor"):
        from_torch(np.ones(2))
    with pytest.raises(TypeError, match="x is an sbpjax.Tensor"):
        to_torch(np.ones(2))


def test_other_names():
    with pytest.raises(NotInJaxError, match="sbpjax.wrap_jax"):
        flow.utils.load_library("ops.so")
    assert flow.utils.model_zoo.load_url is flow.hub.load_url
    handle = flow.ones(1, requires_grad=True).register_hook(lambda g: g)
    assert isinstance(handle, flow.utils.hooks.RemovableHandle)
    with pytest.raises(AttributeError, match="sbpjax.utils.*no attribute 'nothing'"):
        getattr(flow.utils, "nothing")  # noqa: B009
