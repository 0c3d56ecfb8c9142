"""Dropout and other random layers: what stays, moments, the same draw under every layout."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close


def test_dropout_scales_what_stays_and_does_nothing_in_evaluation():
    layer = nn.Dropout(0.25)
    x = flow.ones(4000)
    flow.manual_seed(0)
    y = layer(x).numpy()
    kept = y != 0
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs(kept.mean() - 0.75) < 0.03  # four standard deviations
    assert layer.eval()(x) is x
    assert (nn.Dropout(1.0)(x).numpy() == 0).all()
    channels = nn.Dropout2d(0.5)(flow.ones(8, 16, 2, 3)).numpy().reshape(8, 16, 6)
    assert (channels.min(-1) == channels.max(-1)).all() and 0 < (channels[..., 0] == 0).mean() < 1
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)


@pytest.mark.parametrize("sbp", ["S0", "S1", "B", "P"])
def test_dropout_draws_the_same_mask_under_every_layout(sbp):
    placement = flow.placement("cpu", [0, 1, 2, 3])
    data = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
    flow.manual_seed(3)
    local = flow.tensor(data, requires_grad=True)
    expected = nn.Dropout(0.5)(local)
    flow.manual_seed(3)
    laid_out = flow.tensor(data).to_global(placement, sbp).requires_grad_()
    found = nn.Dropout(0.5)(laid_out)
    close(found, expected)
    found.sum().backward()
    expected.sum().backward()
    close(laid_out.grad, local.grad)


def test_random_layers_keep_their_moments():
    flow.manual_seed(0)
    x = flow.randn(64, 32, 4)
    for layer in (nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.3)):
        y = layer(x).numpy()
        assert abs(y.mean()) < 0.06 and abs(y.std() - 1) < 0.06
    slopes = (nn.RReLU(0.1, 0.3)(-flow.ones(4000)).numpy() * -1).astype(np.float64)
    assert slopes.min() >= 0.1 and slopes.max() < 0.3 and abs(slopes.mean() - 0.2) < 0.005
    samples = nn.functional.gumbel_softmax(flow.tensor([[0.0, np.log(3.0)]]).expand(4000, 2), hard=True)
    assert set(np.unique(samples.numpy())) <= {0.0, 1.0} and abs(samples[:, 1].mean().item() - 0.75) < 0.03
    logits = flow.zeros(3, 4, requires_grad=True)
    (nn.functional.gumbel_softmax(logits, tau=0.5, dim=1)[:, 0]).sum().backward()
    assert logits.grad.abs().sum().item() > 0
    pooled = nn.FractionalMaxPool2d(2, output_ratio=0.5)(flow.randn(2, 3, 9, 8))
    assert tuple(pooled.shape) == (2, 3, 4, 4)
