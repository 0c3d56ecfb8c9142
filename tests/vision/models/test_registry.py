"""Models by name: every constructor, maps of stages, checkpoints, and wrong calls."""

import dataclasses

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import hub, vision
from sbpjax.checkpoint import save_safetensors
from sbpjax.errors import CheckpointError, ConfigError, HubError, OpTypeError, OpValueError
from sbpjax.vision.models import registry
from sbpjax.vision.models.blocks import ImageConfig
from sbpjax.vision.models.resnet import ResNet, ResNetConfig

NAMES = vision.list_models()
ONE_OF_EACH = [
    "resnet18", "seresnet18", "convnext_atto", "convnextv2_atto", "swin_tiny_patch4_window7_224",
    "swinv2_tiny_window8_256", "efficientnet_b0", "efficientnetv2_s",
    "res2net50_48w_2s", "rexnet_100", "iresnet18", "vit_tiny_patch16_224",
    "deit3_small_patch16_224",
]  # fmt: skip
TINY = {"depths": (1, 1, 1, 1), "width": 8}


def image_size(name):
    return getattr(vision.models.model_config(name), "image_size", 64)


@pytest.mark.parametrize(
    "name", [n if n in ONE_OF_EACH[::4] else pytest.param(n, marks=pytest.mark.exhaustive) for n in NAMES]
)
def test_every_model_is_built_without_memory(name):
    with flow.abstract():
        model = vision.create_model(name, num_classes=11, in_chans=1, features_only=name in ONE_OF_EACH[::8])
        body = getattr(model, "body", model)
        size = image_size(name)
        maps = body.maps(flow.zeros(2, 1, size, size))
    assert [(m.shape[1], size // m.shape[2]) for m in maps] == list(zip(body.channels, body.strides, strict=True))
    if body is model:
        with flow.abstract():
            assert model(flow.zeros(2, 1, size, size)).shape == (2, 11)
    with flow.abstract():
        body.reset_classifier(3)
        assert body(flow.zeros(2, 1, size, size)).shape == (2, 3)
    assert all(p.is_meta for p in model.parameters())


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*ONE_OF_EACH, *(name for name in NAMES if name not in ONE_OF_EACH)])
def test_training_mode_is_finite(name):
    config = vision.models.model_config(name)
    patch = getattr(config, "patch_size", 16)
    size = 64 // patch * patch if hasattr(config, "image_size") else 32
    changes = {"image_size": size} if hasattr(config, "image_size") else {}
    model = vision.create_model(name, num_classes=5, **changes)
    model(flow.randn(4, 3, size, size)).square().sum().backward()
    for key, parameter in model.named_parameters():
        assert not parameter.requires_grad or np.isfinite(parameter.grad.numpy()).all(), key


def test_names():
    assert len(NAMES) > 120 and vision.list_models("resnet1?") == ["resnet18"]
    assert {"vit_small_patch32_384", "res2net50_48w_2s", "iresnet101", "deit_tiny_distilled_patch16_224"} <= set(NAMES)
    assert vision.list_models("nothing*") == []


def saved(model, path):
    save_safetensors(model.state_dict(), path)
    return path


def test_checkpoints(tmp_path):
    one = vision.create_model("resnet18", num_classes=4, **TINY)
    file = saved(one, tmp_path / "one.safetensors")
    other = vision.create_model("resnet18", num_classes=4, checkpoint=file, **TINY)
    np.testing.assert_array_equal(other.conv1.weight.numpy(), one.conv1.weight.numpy())
    assert all(p.requires_grad for p in other.parameters())
    maps = vision.create_model("resnet18", num_classes=4, checkpoint=file, features_only=True, **TINY)
    np.testing.assert_array_equal(maps.body.conv1.weight.numpy(), one.conv1.weight.numpy())
    assert maps.channels == (8, 8, 16, 32, 64) and isinstance(maps.body.fc, flow.nn.Identity)
    placed, pair = vision.create_model("resnet18", num_classes=4, **TINY), flow.placement("cpu", [0, 1])
    placed.to_global(pair, flow.sbp.broadcast).conv1.to_global(pair, flow.sbp.split(0))
    vision.models.load_checkpoint(placed, file)
    assert placed.conv1.weight.sbp == (flow.sbp.split(0),)
    np.testing.assert_array_equal(placed.conv1.weight.numpy(), one.conv1.weight.numpy())


def test_a_state_dict_is_read_where_timm_has_other_names(tmp_path):
    small = {"image_size": 8, "patch_size": 4, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    one = vision.create_model("vit_tiny_patch16_224", num_classes=4, **small)
    file = saved(one, tmp_path / "one.safetensors")
    other = vision.create_model("vit_tiny_patch16_224", num_classes=4, checkpoint=file, **small)
    for name, value in one.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name].numpy(), value.numpy())


def test_files_of_pytorch(tmp_path):
    import torch

    one = vision.create_model("resnet18", num_classes=4, **TINY)
    state = {f"module.{k}": torch.tensor(v.numpy()) for k, v in one.state_dict().items() if "tracked" not in k}
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "one.pth")
    other = vision.create_model("resnet18", num_classes=4, checkpoint=tmp_path / "one.pth", **TINY)
    np.testing.assert_array_equal(other.fc.weight.numpy(), one.fc.weight.numpy())
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="a dict of names and tensors"):
        vision.create_model("resnet18", checkpoint=tmp_path / "list.pth", **TINY)


def test_what_a_file_lacks_is_made(tmp_path):
    name, small = "swin_tiny_patch4_window7_224", {"image_size": 32, "window": 4, "depths": (2,), "heads": (3,)}
    model = vision.create_model(name, num_classes=4, width=24, **small)
    file = saved(model, tmp_path / "swin.safetensors")
    other = vision.create_model(name, num_classes=4, width=24, checkpoint=file, **small)
    assert any("mask" in kept for kept, _ in other.named_buffers())  # which no file has
    x = flow.randn(1, 3, 32, 32)
    np.testing.assert_array_equal(other.eval()(x).numpy(), model.eval()(x).numpy())
    assert all(p.requires_grad and p.is_leaf for p in other.parameters())
    other.train()(x).sum().backward()
    assert all(p.grad is not None for p in other.parameters())


def test_pretrained(tmp_path, monkeypatch):
    before = hub.get_dir()
    hub.set_dir(tmp_path / "hub")
    try:
        with pytest.raises(HubError, match=r"no resnet18.safetensors[\s\S]*checkpoint='resnet18.safetensors'"):
            vision.create_model("resnet18", pretrained=True)
        one = vision.create_model("resnet18", num_classes=4, **TINY)
        file = saved(one, tmp_path / "elsewhere.safetensors")
        monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
        vision.register_model("tiny", ResNet, one.config, url=file.as_uri())
        for _ in range(2):  # downloaded, then found
            made = vision.create_model("tiny", pretrained=True)
            np.testing.assert_array_equal(made.fc.weight.numpy(), one.fc.weight.numpy())
            file.unlink(missing_ok=True)
        assert (tmp_path / "hub/checkpoints/tiny.safetensors").exists()
    finally:
        hub.set_dir(before)


WRONG_OPTIONS = [
    ({"num_classes": "3"}, "num_classes=3"),
    ({"num_classes": 10.0}, "num_classes=10"),
    ({"num_classes": True}, "num_classes=1"),
    ({"width": "4"}, "width=4"),
    ({"depths": 2}, r"depths=\(.*\)"),
    ({"drop_path_rate": ".1"}, "drop_path_rate=0.1"),
    ({"drop_path_rate": 2.0}, "drop_path_rate=0.1"),
    ({"drop_rate": 0.1}, "leave it out: there is nothing like it"),
    ({"checkpoint_path": "x"}, "checkpoint=..."),
]


def test_wrong_names_and_options(monkeypatch):
    with pytest.raises(ConfigError, match=r"resnet-50[\s\S]*near: resnet50[\s\S]*create_model\('resnet50'\)"):
        vision.create_model("resnet-50")
    with pytest.raises(ConfigError, match=r"list_models\(\) has all names"):
        vision.create_model("qqqqqqq")
    with pytest.raises(ConfigError, match=r"drop_path=0.1[\s\S]*fields of resnet18[\s\S]*drop_path_rate="):
        vision.create_model("resnet18", drop_path=0.1)
    with pytest.raises(ConfigError, match=r"\(at .*test_registry.py:\d+\)\s+seen: num_classes=-1"):
        vision.create_model("resnet18", num_classes=-1)
    for wrong, fix in WRONG_OPTIONS:
        with pytest.raises(ConfigError, match=rf"fix:  {fix}$"):
            vision.create_model("resnet18", **wrong)
    with pytest.raises(ConfigError, match="image_size is of type int"):
        vision.create_model("vit_tiny_patch16_224", image_size=(16, 16))
    for name in ("resnet18.a1_in1k", "hf-hub:timm/resnet18.a1_in1k"):
        with pytest.raises(
            ConfigError, match=r"fix:  create_model\('resnet18'\), or from_hub\('timm/resnet18.a1_in1k'\)"
        ):
            vision.create_model(name)
    model = vision.create_model("resnet18", num_classes=4, **TINY)
    with pytest.raises(ConfigError, match=r"reset_classifier[\s\S]*num_classes='3'"):
        model.reset_classifier("3")
    assert model.fc.weight.shape[0] == 4
    face = vision.create_model("iresnet18", num_classes=8, width=8, image_size=32)
    with pytest.raises(ConfigError, match="num_classes=-3"):
        face.reset_classifier(-3)
    assert face.fc.weight.shape[0] == 8
    with pytest.raises(ConfigError, match="in_chans=0"):
        vision.create_model("resnet18", in_chans=0)
    with pytest.raises(ConfigError, match=r"frozen dataclass[\s\S]*ImageConfig"):
        vision.register_model("mine", ResNet, {"num_classes": 3})
    with pytest.raises(dataclasses.FrozenInstanceError):
        ImageConfig().num_classes = 3
    with pytest.raises(ConfigError, match="halved 3 times"):
        vision.create_model("swin_tiny_patch4_window7_224", image_size=100)


def test_wrong_checkpoints(tmp_path):
    model = ResNet(ResNetConfig(**TINY, num_classes=4))
    file = saved(model, tmp_path / "four.safetensors")
    before = model.conv1.weight.tolist()
    output = r"fc.weight \(4, 256\), for \(10, 256\)[\s\S]*num_classes=4, checkpoint=...\), then model.reset_classifier"
    with pytest.raises(CheckpointError, match=output):
        vision.create_model("resnet50", num_classes=10, checkpoint=file, **TINY)
    with pytest.raises(CheckpointError, match=r"fc.weight, which the model has not[\s\S]*num_classes=4, checkpoint="):
        vision.create_model("resnet50", num_classes=0, checkpoint=file, **TINY)
    with pytest.raises(CheckpointError, match=r"layer1[\s\S]*and \d+ more[\s\S]*the options that the file"):
        vision.create_model("resnet18", num_classes=4, checkpoint=file, **TINY)
    with pytest.raises(CheckpointError, match="no such file"):
        vision.create_model("resnet18", checkpoint=tmp_path / "none.safetensors")
    assert model.conv1.weight.tolist() == before


def test_wrong_images():
    with flow.abstract():
        model = vision.create_model("resnet18", **TINY)
        with pytest.raises(OpValueError, match=r"images are \(B, 3, H, W\)[\s\S]*permute\(0, 3, 1, 2\)"):
            model(flow.zeros(2, 32, 32, 3))
        with pytest.raises(OpValueError, match="in_chans=1"):
            model(flow.zeros(2, 1, 32, 32))
        with pytest.raises(OpValueError, match=r"images.unsqueeze\(0\)"):
            model(flow.zeros(3, 32, 32))
        with pytest.raises(OpTypeError, match=r"a ndarray[\s\S]*flow.tensor\(np.stack\(arrays\)\)"):
            model(np.zeros((2, 3, 32, 32), np.float32))
        with pytest.raises(OpTypeError, match=r"images.float\(\) / 255"):
            model(flow.zeros(2, 3, 32, 32, dtype=flow.uint8))
