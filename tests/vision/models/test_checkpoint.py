"""Files that `save_checkpoint` writes: read back bit by bit, and what timm itself writes and takes strictly."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import vision
from sbpjax.checkpoint import open_safetensors
from sbpjax.errors import CheckpointError
from sbpjax.models.weights import Part
from sbpjax.vision.models import load_checkpoint, save_checkpoint
from tests.support.timm_alone import timm
from tests.vision.models.both import CLASSES, LOGITS, close, first_blocks, theirs_and_file

FOUR = {"depths": (1, 1, 1, 1)}
NARROW = {"width": 0.25, "features": 64}
VIT = {"image_size": 32, "hidden_size": 48, "num_hidden_layers": 2}
SWIN = {"image_size": 32, "window": 4, "depths": (2, 2), "heads": (2, 4), "width": 16}
SMALL = {
    "resnet18": FOUR | {"width": 8},
    "convnext_atto": FOUR | {"widths": (8, 16, 24, 32)},
    "convnextv2_tiny": FOUR | {"widths": (8, 16, 24, 32)},
    "swin_tiny_patch4_window7_224": SWIN,
    "swinv2_tiny_window8_256": SWIN,
    "efficientnet_b0": NARROW,
    "res2net50_26w_4s": FOUR | {"width": 8},
    "rexnet_100": {"repeats": (1, 1, 1, 1, 1, 1)},
    "iresnet18": FOUR | {"width": 8, "image_size": 32},
    "vit_tiny_patch16_224": VIT,
    "vit_small_patch14_reg4_dinov2": VIT | {"image_size": 28, "num_attention_heads": 3},
    "deit_tiny_distilled_patch16_224": VIT,
    "deit3_small_patch16_224": VIT | {"num_attention_heads": 3},
}
# Options of timm's model, and of ours.
AGAINST = {
    "vit_tiny_patch16_224": ({"img_size": 32, "cut": first_blocks}, {"image_size": 32, "num_hidden_layers": 2}),
    "deit_tiny_distilled_patch16_224": (
        {"img_size": 32, "cut": first_blocks},
        {"image_size": 32, "num_hidden_layers": 2},
    ),
    "swin_tiny_patch4_window7_224": (
        {"img_size": 32, "window_size": 4, "depths": (2, 2), "num_heads": (2, 4), "embed_dim": 16},
        SWIN,
    ),
    "resnet18": ({"layers": (1, 1, 1, 1)}, FOUR),
    "convnextv2_atto": (FOUR, FOUR),  # whose products are convolutions in timm
}


def random_model(name, **options):
    """Return a model with random values, of which buffers that are in no file have none."""
    with flow.abstract():
        model = vision.create_model(name, num_classes=CLASSES, **options)
    drawn = np.random.default_rng(0)
    for own in model.state_dict(keep_vars=True).values():
        own.data = flow.tensor(drawn.normal(size=tuple(own.shape)).astype(np.float32), dtype=own.dtype)
    return model


@pytest.mark.parametrize("name", SMALL)
def test_a_file_is_read_back_bit_by_bit(name, tmp_path):
    model, file = random_model(name, **SMALL[name]), tmp_path / "one.safetensors"
    save_checkpoint(model, file)
    other = random_model(name, **SMALL[name])
    for parameter in other.parameters():
        parameter.data = flow.zeros_like(parameter)
    wanted, found = model.state_dict(), load_checkpoint(other, file).state_dict()
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key].dtype == value.dtype
        np.testing.assert_array_equal(found[key].numpy(), value.numpy())


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize("name", AGAINST)
def test_timm_takes_a_file_and_writes_the_same(name, tmp_path):
    import torch
    from safetensors.torch import load_file

    theirs, ours = AGAINST[name]
    before, file = theirs_and_file(name, theirs, tmp_path)
    model = vision.create_model(name, num_classes=CLASSES, checkpoint=file, **ours)
    save_checkpoint(model, tmp_path / "written.safetensors")
    state = load_file(tmp_path / "written.safetensors")
    wanted = before.state_dict()
    assert {k: (v.shape, v.dtype) for k, v in state.items()} == {k: (v.shape, v.dtype) for k, v in wanted.items()}
    assert all(torch.equal(value, wanted[key]) for key, value in state.items())
    options = {key: value for key, value in theirs.items() if key != "cut"}
    fresh = timm().create_model(name, num_classes=CLASSES, **options)
    theirs.get("cut", lambda _: None)(fresh)
    fresh.load_state_dict(state, strict=True)
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    close(flow.compile(model.eval())(flow.tensor(x.numpy())), fresh.eval()(x), LOGITS)


@pytest.mark.exhaustive  # minutes
@pytest.mark.filterwarnings("ignore")  # other packages' own
def test_names_and_shapes_of_all_models_are_those_of_timm():
    import torch

    for name in vision.list_models():
        if name.startswith("iresnet"):
            continue  # of another package
        with torch.device("meta"):
            wanted = {k: tuple(v.shape) for k, v in timm().create_model(name, num_classes=CLASSES).state_dict().items()}
        with flow.abstract():
            model = vision.create_model(name, num_classes=CLASSES)
        found = {}
        for key, value in model.state_dict().items():
            part = getattr(model, "weights_of", Part)(key)
            found[part.name] = part.shape(tuple(value.shape)) if value.ndim else ()
        assert found == wanted, name


def test_layouts_and_feature_maps(tmp_path):
    options = SMALL["vit_tiny_patch16_224"] | {"num_attention_heads": 4}
    model = random_model("vit_tiny_patch16_224", **options)
    save_checkpoint(model, tmp_path / "alone.safetensors")
    flow.models.parallelize(model, flow.models.Parallel(fsdp=2, tensor=2, device="cpu"))
    assert any(s.is_split for s in model.blocks[0].attention.q.weight.sbp)
    save_checkpoint(model, tmp_path / "apart.safetensors")
    assert (tmp_path / "alone.safetensors").read_bytes() == (tmp_path / "apart.safetensors").read_bytes()
    maps = vision.create_model(
        "vit_tiny_patch16_224",
        num_classes=CLASSES,
        features_only=True,
        checkpoint=tmp_path / "alone.safetensors",
        **options,
    )
    save_checkpoint(maps, tmp_path / "maps.safetensors")
    whole, backbone = (open_safetensors(tmp_path / f"{name}.safetensors") for name in ("alone", "maps"))
    assert whole.keys() - backbone.keys() == {"head.weight", "head.bias"} and backbone.keys() < whole.keys()


def test_an_ending_of_other_files(tmp_path):
    model = random_model("resnet18", **SMALL["resnet18"])
    with pytest.raises(CheckpointError, match=r"the ending .pth[\s\S]*one.safetensors; or flow.save\("):
        save_checkpoint(model, tmp_path / "one.pth")
    with pytest.raises(CheckpointError, match="No such file or directory"):
        save_checkpoint(model, tmp_path / "nowhere" / "one.safetensors")


def test_a_folder_that_save_wrote(tmp_path):
    model = vision.create_model("resnet18", num_classes=3, depths=(1, 1, 1, 1), width=4)
    flow.save(model.state_dict(), tmp_path / "m.pth")
    with pytest.raises(CheckpointError, match=r"model.load_state_dict\(sbpjax.load\(.*m.pth"):
        load_checkpoint(model, tmp_path / "m.pth")
    model.load_state_dict(flow.load(tmp_path / "m.pth"))
