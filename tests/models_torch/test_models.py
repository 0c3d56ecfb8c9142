"""Model files written for PyTorch give PyTorch's outputs, gradients and state, on one device and on a 2-D placement."""

import pytest

import sbpjax
from sbpjax import nn
from tests.models_torch.both import check, everything, expected, mocked_model

FILES = ["resnet", "vit", "gpt2", "bert", "unet", "tagger"]
B, S0 = sbpjax.sbp.broadcast, sbpjax.sbp.split(0)


@pytest.mark.exhaustive  # 15 to 40 seconds each; the test under 2-D sbp compares with torch too
@pytest.mark.parametrize("name", FILES)
def test_one_device(name):
    weights, arrays, wanted = expected(name)
    file, model = mocked_model(name, weights)
    check(everything(file, model, {k: sbpjax.from_numpy(v) for k, v in arrays.items()}), wanted)


def laid_out(model, placement):
    """Lay a model out: tensor-parallel linear and embedding weights along axis 1, the rest broadcast."""
    model.to_global(placement, [B, B])
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding, nn.Conv2d)):
            module.to_global(placement, [B, S0])
    return model


@pytest.mark.parametrize(
    "name",
    ["gpt2", *[pytest.param(f, marks=pytest.mark.exhaustive) for f in FILES if f != "gpt2"]],
)
def test_two_dimensional_sbp(name):
    placement = sbpjax.placement("cpu", [[0, 1], [2, 3]])
    weights, arrays, wanted = expected(name)
    file, model = mocked_model(name, weights)
    batch = {k: sbpjax.from_numpy(v).to_global(placement, [S0, B]) for k, v in arrays.items()}
    found = everything(file, laid_out(model, placement), batch, more=False)
    assert all(p.is_global and p.grad.sbp == p.sbp for p in model.parameters() if p.grad is not None)
    check(found, {k: v for k, v in wanted.items() if not k.startswith("more ")})
