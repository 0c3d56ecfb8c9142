"""ViT: the logits of timm and transformers, their files, and the same training under every mesh."""

import doctest
import importlib
import importlib.util

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, nn, optim
from sbpjax.checkpoint import open_safetensors
from sbpjax.errors import CheckpointError, ConfigError, PlacementError
from sbpjax.models.parallelize import Layouts
from sbpjax.vision.models import vit
from tests.vision.models.vit.record import DATA, SIZE

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
MESHES = {
    "dp": {"data": 4},
    "tp": {"tensor": 4},
    "fsdp": {"fsdp": 4},
    "3d": {"data": 2, "fsdp": 2, "tensor": 2},
    "uneven": {"tensor": 3},
    "pp": {"pipeline": 2, "data": 2},
}
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


def timm_config():
    return vit.ViTConfig(**SIZE, layer_norm_eps=1e-6)


@pytest.mark.parametrize("mesh", [None, {"tensor": 2}, {"fsdp": 2, "tensor": 2}], ids=str)
def test_logits_of_timm(mesh):
    model = vit.ViT(timm_config())
    spec = None if mesh is None else models.Parallel(**mesh, device="cpu")
    if spec is not None:
        models.parallelize(model, spec)
    before = model.blocks[0].attention.q.weight.sbp if spec else None
    vit.load_timm(model, DATA / "timm.safetensors").eval()
    with np.load(DATA / "facts.npz") as facts:
        images, logits = facts["images"], facts["logits"]
    images = (
        flow.tensor(images)
        if spec is None
        else flow.tensor(images, placement=spec.placement, sbp=[flow.sbp.broadcast] * len(spec.axes))
    )
    np.testing.assert_allclose(model(images).detach().numpy(), logits, **TOLERANCE)
    assert spec is None or model.blocks[0].attention.q.weight.sbp == before


@needs_transformers
@pytest.mark.filterwarnings("ignore")  # other packages' own
def test_logits_and_gradients_of_transformers(tmp_path):
    import torch
    import transformers

    config = transformers.ViTConfig(**SIZE, initializer_range=0.3)
    torch.manual_seed(0)
    theirs = transformers.ViTForImageClassification(config).eval()
    for parameter in theirs.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = models.from_pretrained(tmp_path / "theirs", family=vit).eval()
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(4, 3, 12, 12)).astype(np.float32), rng.integers(0, 5, 4)
    out = theirs(torch.tensor(images), labels=torch.tensor(labels))
    out.loss.backward()
    loss = ours.loss(flow.tensor(images), flow.tensor(labels))
    loss.backward()
    np.testing.assert_allclose(ours(flow.tensor(images)).detach().numpy(), out.logits.detach().numpy(), **TOLERANCE)
    np.testing.assert_allclose(loss.item(), out.loss.item(), rtol=1e-5)
    models.save_pretrained(ours, tmp_path / "ours", family=vit)
    again, expected = transformers.ViTForImageClassification.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not any(expected.values()), expected
    for one, two in zip(again.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, two)
    for parameter in theirs.parameters():  # gradients by the names of the files
        parameter.data = parameter.grad
    theirs.save_pretrained(tmp_path / "gradients")
    gradients = open_safetensors(tmp_path / "gradients")
    for name, parameter in ours.named_parameters():
        part = vit.weights.WEIGHTS.part(name)
        wanted = part.read(gradients[part.name])
        np.testing.assert_allclose(parameter.grad.numpy(), wanted, rtol=1e-3, atol=1e-5, err_msg=name)


class Step(nn.Graph):
    def __init__(self, model, micro_batches):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.AdamW(model.parameters(), lr=3e-3))
        self.config.set_gradient_accumulation_steps(micro_batches)

    def build(self, images, labels):
        loss = self.model.loss(images, labels)
        loss.backward()
        return loss


def losses(spec, steps=3):
    flow.manual_seed(0)
    model = models.parallelize(vit.ViT(timm_config()), spec)
    step, rng, found = Step(model, 4 if spec.pipeline > 1 else 1), np.random.default_rng(0), []
    for _ in range(steps):
        images, labels = rng.normal(size=(8, 3, 12, 12)).astype(np.float32), rng.integers(0, 5, 8)
        found.append(step(spec.place(images), spec.place(labels, -1)).mean().item())
    return found, model


@pytest.fixture(scope="module")
def alone():
    return losses(models.Parallel(device="cpu"))[0]


@pytest.mark.parametrize("mesh", MESHES)
def test_losses_are_those_of_one_device(mesh, alone):
    spec = models.Parallel(**MESHES[mesh], device="cpu")
    found, model = losses(spec)
    np.testing.assert_allclose(found, alone, rtol=1e-5)
    layouts = Layouts(model, spec).of
    for name, parameter in model.named_parameters():
        assert (parameter.placement, list(parameter.sbp)) == layouts[name], name


@pytest.mark.parametrize("file", ["config", "model", "weights"])
def test_examples(file):
    module = importlib.import_module(f"sbpjax.vision.models.vit.{file}")
    found = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    assert found
    for test in found:
        text = []
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=text.append)
        assert not text, "".join(text)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"patch_size": 5}, "image_size=12, patch_size=5\n  rule: an image is cut into whole patches"),
        ({"num_attention_heads": 3}, "hidden_size is a multiple of num_attention_heads"),
        ({"hidden_act": "gelo"}, "hidden_act='gelo'"),
        ({"model_type": "vitt"}, "it is vit"),
    ],
)
def test_configurations_that_contradict_themselves(changes, expected):
    with pytest.raises(ConfigError, match=expected):
        vit.ViTConfig(**SIZE | changes)


def test_misuse():
    model = vit.ViT(vit.ViTConfig(**SIZE | {"num_labels": 4, "num_hidden_layers": 1}))
    before = model.head.weight.tolist()
    with pytest.raises(CheckpointError, match=r"head.weight \(5, 16\), for \(4, 16\)[\s\S]*blocks.1[\s\S]*another ViT"):
        vit.load_timm(model, DATA / "timm.safetensors")
    assert model.head.weight.tolist() == before
    with pytest.raises(PlacementError, match="4 heads"):
        models.parallelize(model, models.Parallel(tensor=8, device="cpu"))
