"""ViT, DeiT and DeiT III by name: the logits and gradients of timm with the same weights; layouts and misuse."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models
from sbpjax.errors import ConfigError, OpValueError
from sbpjax.vision.models import vit
from tests.vision.models.both import check_against_timm, first_blocks

SMALL = {"cut": first_blocks}, {"num_hidden_layers": 2}
KINDS = [
    "deit_tiny_distilled_patch16_224",
    "vit_medium_patch16_reg4_gap_256",
    "vit_tiny_patch16_224",
    "deit3_small_patch16_224",
    "vit_small_patch32_384",
    "vit_small_patch14_reg4_dinov2",
    "vit_small_patch14_dinov2",
]
CASES = [
    *[(name, *SMALL) for name in KINDS[:2]],
    *[pytest.param(name, *SMALL, marks=pytest.mark.exhaustive) for name in KINDS[2:]],
    *[pytest.param(name, {}, {}, marks=pytest.mark.exhaustive) for name in KINDS],
]
TINY = {"image_size": 8, "patch_size": 4, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, tmp_path):
    size = 28 if "patch14" in name else 32
    check_against_timm(name, tmp_path, {"img_size": size} | theirs, {"image_size": size} | ours, size)


@pytest.mark.parametrize(
    "fields",
    [
        {"distillation": True},
        {"registers": 2, "class_token": False, "positions_of_all": False, "layer_scale": 0.1},
    ],
)
def test_layouts_of_the_family(fields):
    flow.manual_seed(0)
    model = vit.ImageViT(vit.ImageViTConfig(**TINY, **fields, num_classes=6))
    images = np.random.default_rng(0).normal(size=(4, 3, 8, 8)).astype(np.float32)
    alone = model(flow.tensor(images)).detach().numpy()
    spec = models.Parallel(data=2, tensor=2, device="cpu")
    models.parallelize(model, spec)
    found = model(spec.place(images)).detach().to_global(sbp=[flow.sbp.broadcast] * len(spec.axes)).numpy()
    np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-6)
    assert any(s.is_split for s in model.blocks[0].attention.q.weight.sbp)


def test_two_classifiers():
    model = vit.ImageViT(vit.ImageViTConfig(**TINY, distillation=True, num_classes=6)).eval()
    x = flow.randn(2, 3, 8, 8)
    one, other = model.both(x)
    np.testing.assert_allclose(model(x).detach().numpy(), ((one + other) / 2).detach().numpy(), rtol=1e-6)
    model.reset_classifier(3)
    assert model.head_dist.weight.shape == (3, 16) and model(x).shape == (2, 3)


def test_misuse():
    with pytest.raises(ConfigError, match="distillation token needs a class token"):
        vit.ImageViTConfig(**TINY, distillation=True, class_token=False)
    with pytest.raises(ConfigError, match="hidden_size is a multiple of num_attention_heads"):
        vit.ImageViTConfig(**TINY | {"num_attention_heads": 3})
    model = vit.ImageViT(vit.ImageViTConfig(**TINY))
    with pytest.raises(OpValueError, match="images of 8 x 8[\\s\\S]*image_size=12"):
        model(flow.zeros(1, 3, 12, 12))
