import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.models.layers import ACTIVATIONS, MLP, GatedMLP

TORCH = {
    "silu": torch.nn.functional.silu,
    "swish": torch.nn.functional.silu,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_new": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}


def weights(layer):
    return {name: torch.tensor(p.detach().numpy()) for name, p in layer.named_parameters()}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_both_layers(name):
    flow.manual_seed(0)
    x = np.random.default_rng(0).standard_normal((2, 3, 8)).astype("f")
    plain, gated = MLP(8, 12, name), GatedMLP(8, 12, name, bias=True)
    linear, act = torch.nn.functional.linear, TORCH[name]
    w, given = weights(plain), torch.tensor(x)
    want = linear(act(linear(given, w["up.weight"], w["up.bias"])), w["down.weight"], w["down.bias"])
    np.testing.assert_allclose(plain(flow.tensor(x)).detach().numpy(), want.numpy(), rtol=1e-4, atol=1e-6)
    w = weights(gated)
    inner = act(linear(given, w["gate.weight"], w["gate.bias"])) * linear(given, w["up.weight"], w["up.bias"])
    want = linear(inner, w["down.weight"], w["down.bias"])
    np.testing.assert_allclose(gated(flow.tensor(x)).detach().numpy(), want.numpy(), rtol=1e-4, atol=1e-6)


def test_no_bias_by_default_where_gated():
    assert [name for name, _ in GatedMLP(4, 4, "silu").named_parameters()] == [
        f"{n}.weight" for n in ("gate", "up", "down")
    ]
