"""Other names of arguments, wherever PyTorch takes them: NumPy's `axis` and `keepdims`, sizes by name."""

import numpy as np
import pytest
import torch

import sbpjax as flow

CALLS = [
    "x.sum(axis=1)",
    "x.sum(axis=(0, 1), keepdims=True)",
    "x.mean(axis=0, keepdims=True)",
    "T.mean(x, axis=1)",
    "x.max(axis=1)",
    "x.argmax(axis=1, keepdims=True)",
    "x.squeeze(axis=0)",
    "x.unsqueeze(axis=0)",
    "T.cat([x, x], axis=1)",
    "T.stack([x, x], axis=1)",
    "T.concat([x, x], axis=0)",
    "x.softmax(axis=1)",
    "x.cumsum(axis=0)",
    "x.prod(axis=0)",
    "x.std(axis=0, keepdims=True)",
    "x.all(axis=0)",
    "x.sort(axis=0)",
    "T.argsort(x, axis=0)",
    "x.amax(axis=0)",
    "x.logsumexp(axis=0)",
    "x.index_select(axis=0, index=T.tensor([0]))",
    "T.gather(x, axis=1, index=T.tensor([[0], [1]]))",
    "T.chunk(x, 2, axis=0)",
    "x.unbind(axis=0)",
    "x.median(axis=0)",
    "x.narrow(axis=0, start=0, length=1)",
    "T.topk(x, 1, axis=0)",
    "T.quantile(x, 0.5, axis=0)",
    "x.select(axis=0, index=1)",
    "T.linalg.norm(x, axis=0)",
    "T.var_mean(x, axis=0)",
    "T.diff(x, axis=0)",
    "x.scatter(axis=0, index=T.tensor([[1, 0]]), src=x)",
    "T.zeros(size=(2, 3))",
    "T.ones(size=[2])",
    "x.new_zeros(size=(2,))",
    "x.reshape(shape=(4,))",
    "x.view(size=(1, 4))",
    "T.reshape(input=x, shape=(1, -1))",
    "T.permute(input=x, dims=(1, 0))",
    "x.permute(dims=(1, 0))",
    "x.flip(dims=(0,))",
    "T.flip(input=x, dims=[1])",
    "T.tile(x, dims=(2, 1))",
    "x.repeat(repeats=(2, 1))",
    "x[:1].expand(size=(3, 2))",
    "T.squeeze(input=x, dim=0)",
    "T.transpose(input=x, dim0=0, dim1=1)",
    "T.swapaxes(x, axis0=0, axis1=1)",
    "T.flatten(input=x, start_dim=0)",
    "T.unbind(input=x, dim=1)",
    "T.split(tensor=x, split_size_or_sections=1)",
    "T.narrow(input=x, dim=0, start=0, length=1)",
    "T.select(input=x, dim=1, index=0)",
    "T.movedim(input=x, source=0, destination=1)",
    "T.broadcast_to(input=x, size=(2, 2, 2))",
    "T.diagonal(input=x, offset=1)",
    "T.dot(T.ones(2), tensor=T.ones(2))",
    "T.float_power(x, exponent=2)",
    "x.clone().addmm_(mat1=x, mat2=x, beta=2)",
    "x.clone().clamp_min_(min=2)",
    "x.clone().addcmul_(tensor1=x, tensor2=x, value=2)",
    "x.clone().lerp_(end=x + 1, weight=0.5)",
    "x.clone().copy_(other=x + 1)",
    "x.clone().transpose_(dim0=0, dim1=1)",
    "x.clone().unsqueeze_(dim=1)",
    "T.hsplit(x, sections=2)",
    "x.view(dtype=T.int32)",
    "x.mv(vec=T.ones(2))",
    "T.tensor_split(input=x, indices=(1,), dim=1)",
    "x.clone().resize_(size=(1, 2))",
    "x.mm(mat2=x)",
]


def values(found):
    if isinstance(found, (tuple, list)):
        return [values(each) for each in found]
    return found.numpy()


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_pytorchs(call):
    found = []
    for library in (flow, torch):
        x = library.tensor([[3.0, 1.0], [2.0, 5.0]])
        found.append(values(eval(call, {"T": library, "x": x})))
    got, want = found
    for a, b in zip(*[f if isinstance(f, list) else [f] for f in (got, want)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_names_without_a_value_to_compare():
    flow.manual_seed(0)
    assert flow.randn(size=(2, 3)).shape == (2, 3) and flow.rand(size=[4]).shape == (4,)
    assert flow.promote_types(type1=flow.int32, type2=flow.float32) is flow.float32
    assert flow.result_type(tensor=flow.ones(1), other=1) is flow.float32 and flow.can_cast(
        from_=flow.int32, to=flow.int64
    )
    with flow.set_grad_enabled(mode=False):
        assert not flow.is_grad_enabled()
    with flow.inference_mode(mode=True):
        assert flow.is_inference_mode_enabled()


def test_one_argument_has_one_name():
    with pytest.raises(TypeError):
        flow.ones(2).sum(axes=0)
    with pytest.raises(TypeError):
        flow.ones(2).softmax(0, axis=0)
