"""``out=`` of the functions of `nn.functional` that take it in PyTorch, which are few; and of copies."""

import numpy as np
import pytest
import torch

import sbpjax as flow

IMAGE, VOLUME = (2, 3, 6, 6), (1, 2, 4, 4, 4)
CASES = {
    "gelu": (lambda t, x, **o: t.nn.functional.gelu(x, approximate="tanh", **o), (3, 4)),
    "hardshrink": (lambda t, x, **o: t.nn.functional.hardshrink(x, 0.3, **o), (3, 4)),
    "softshrink": (lambda t, x, **o: t.nn.functional.softshrink(x, 0.3, **o), (3, 4)),
    "softplus": (lambda t, x, **o: t.nn.functional.softplus(x, 2, **o), (3, 4)),
    "logsigmoid": (lambda t, x, **o: t.nn.functional.logsigmoid(x, **o), (3, 4)),
    "linear": (lambda t, x, **o: t.nn.functional.linear(x, x[:2], **o), (3, 4)),
    "avg_pool2d": (lambda t, x, **o: t.nn.functional.avg_pool2d(x, 2, **o), IMAGE),
    "avg_pool3d": (lambda t, x, **o: t.nn.functional.avg_pool3d(x, 2, 1, **o), VOLUME),
    "narrow_copy": (lambda t, x, **o: t.narrow_copy(x, 1, 1, 2, **o), (3, 4)),
    "as_strided_copy": (lambda t, x, **o: t.as_strided_copy(x, (2, 2), (1, 2), **o), (3, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_out_is_written_and_returned(name):
    call, shape = CASES[name]
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = call(torch, torch.tensor(values))
    out = flow.zeros(*wanted.shape)
    assert call(flow, flow.tensor(values), out=out) is out
    np.testing.assert_allclose(out.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_out_of_a_pool_with_channels_last():
    values = np.random.default_rng(0).standard_normal((2, 4, 4, 3)).astype(np.float32)
    x, out = flow.tensor(values), flow.zeros(2, 2, 2, 3)
    flow.nn.functional.avg_pool2d(x, 2, data_format="channels_last", out=out)
    np.testing.assert_allclose(out.numpy(), values.reshape(2, 2, 2, 2, 2, 3).mean((2, 4)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["chalf", "to_sparse", "to_sparse_csr"])
def test_method_without_a_counterpart_names_the_way(name):
    with pytest.raises(NotImplementedError, match="fix:"):
        getattr(flow.ones(2, 2), name)()
