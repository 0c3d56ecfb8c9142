"""The recipes of images: their data, small runs on several meshes, commands of the pages, scores of the whole runs."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from examples.vision import digits as data
from examples.vision import recipe, shapes
from sbpjax.train import load_run, parameter_groups
from sbpjax.train.cli import main
from sbpjax.train.config import load_config, override

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
ROOT = Path(__file__).parents[2]
README = (ROOT / "examples" / "vision" / "README.md").read_text()
TOLERANCE = 2e-4  # relative, float32 sums in another order over the steps
QUICK = ["steps=4", "trainer.log_every=1", "trainer.schedule.warmup=1", "trainer.batch_size=16",
         "trainer.hooks.goal=null", "trainer.hooks.held_out.batches=1"]  # fmt: skip
MESHES = {
    "fsdp": ["trainer.parallel.fsdp=4"],
    "2d": ["trainer.parallel.fsdp=1", "trainer.parallel.data=2", "trainer.parallel.tensor=2"],
    "auto": ["trainer.parallel.fsdp=1", "trainer.parallel.data=4", "--auto"],
}


def losses(config, out, *changes):
    main([config, *QUICK, f"trainer.out={out}", *changes])
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [record["loss"] for record in records if "loss" in record]


def test_the_digits():
    pixels, labels = data.pixels_and_labels(16)
    assert pixels.shape == (1797, 16, 16) and pixels.dtype == np.uint8 and set(labels) == set(range(10))
    train, held_out = data.digits("train", margin=1), data.digits("held_out")
    assert len(train) + len(held_out) == 1797 and len(held_out) == 359
    assert train[0]["images"].shape == (1, 8, 8) and np.bincount(held_out.labels).max() / 359 < 0.15


@pytest.mark.slow
def test_a_vit_on_meshes_and_by_the_planner(tmp_path):
    vit = "examples.vision.vit"
    alone = losses(vit, tmp_path / "alone", "trainer.parallel.fsdp=1")
    assert len(alone) == 4 and (tmp_path / "alone" / "loss.png").stat().st_size > 5_000
    np.testing.assert_allclose(losses(vit, tmp_path / "2d", *MESHES["2d"]), alone, rtol=TOLERANCE)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("mesh", ["fsdp", "auto"])
def test_a_vit_on_other_meshes(mesh, tmp_path):
    alone = losses("examples.vision.vit", tmp_path / "alone", "trainer.parallel.fsdp=1")
    np.testing.assert_allclose(losses("examples.vision.vit", tmp_path / mesh, *MESHES[mesh]), alone, rtol=TOLERANCE)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("config", ["resnet", "swin"])
def test_data_parallel_is_one_device(config, tmp_path):
    alone = losses(f"examples.vision.{config}", tmp_path / "alone", "trainer.parallel.data=1")
    apart = losses(f"examples.vision.{config}", tmp_path / "apart", "trainer.parallel.data=4")
    np.testing.assert_allclose(apart, alone, rtol=1e-2 if config == "resnet" else TOLERANCE)


def photos(folder):
    from PIL import Image

    for part in ("train", "val"):
        for name, colour in (("cat", (200, 30, 30)), ("dog", (30, 30, 200))):
            (folder / "photos" / part / name).mkdir(parents=True)
            for i in range(8):
                Image.new("RGB", (48, 40), colour).save(folder / "photos" / part / name / f"{i}.jpg")
    return ["classes=2", "size=32", "batch=8", "samples=64", "trainer.workers=0", "trainer.parallel.device=cpu"]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_folder_of_photos(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["examples.vision.folder", "model=resnet18", *photos(tmp_path), "trainer.parallel.data=2", "--fast-dev-run"])
    assert "validation/accuracy" in capsys.readouterr().out


def test_fine_tuning_of_a_small_model_on_photos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = {"image_size": 32, "hidden_size": 48, "num_hidden_layers": 1}
    before = flow.vision.create_model("vit_tiny_patch16_224", num_classes=5, **small)
    flow.vision.models.save_checkpoint(before, "five.safetensors")
    run = ["model=vit_tiny_patch16_224", *photos(tmp_path), *(f"options.{name}={n}" for name, n in small.items())]
    run += ["checkpoint=five.safetensors", "trained_classes=5", "backbone_lr_scale=0.1", "every=1"]
    run += ["freeze_steps=1", "trainer.log_every=1", "trainer.hooks.average=null"]
    main(["examples.vision.folder", *run, "steps=2"])
    frozen, tuned = (load_run("runs/vit_tiny_patch16_224", step=step, allow=("examples",)) for step in (1, 2))
    known, one, two = before.state_dict(), frozen.state_dict(), tuned.state_dict()
    for name in known.keys() - {"head.weight", "head.bias"}:
        np.testing.assert_array_equal(one[name].numpy(), known[name].numpy())
        assert (two[name].numpy() != known[name].numpy()).any() or name.endswith("k.bias"), name
    assert one["head.weight"].shape == (2, 48) and (two["head.weight"].numpy() != one["head.weight"].numpy()).all()


def test_rates_of_head_and_backbone():
    model = flow.vision.create_model("resnet18", num_classes=3, depths=(1, 1, 1, 1), width=8)
    for parameter in model.parameters():
        parameter.is_trained = parameter.shape[0] != 3
    groups = recipe.adamw(parameter_groups(model), lr=1e-3, weight_decay=0.1, backbone_lr_scale=0.1).param_groups
    rates = [(group["name"], group["lr"], group["weight_decay"]) for group in groups]
    assert rates == [("head", 1e-3, 0.1), ("head", 1e-3, 0), ("backbone", 1e-4, 0.1), ("backbone", 1e-4, 0)]
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))


def test_a_short_run_is_not_all_warm_up():
    for steps, rise in ((40, 2), (15_000, 500)):
        factor = recipe.rise_and_fall(steps)
        assert factor(rise - 1) == 1 and factor(steps) == pytest.approx(1e-3) and factor(0) == pytest.approx(1 / rise)


def test_a_classifier_for_other_classes(tmp_path, monkeypatch):
    small = {"depths": (1, 1, 1, 1), "width": 8}
    made = flow.vision.create_model
    monkeypatch.setattr(recipe.vision, "create_model", lambda name, **options: made(name, **options, **small))
    model = recipe.classifier("resnet18", 4)
    flow.checkpoint.save_safetensors(model.state_dict(), tmp_path / "one.safetensors")
    other = recipe.classifier("resnet18", 3, tmp_path / "one.safetensors", trained_classes=4)
    assert other.fc.weight.shape == (3, 64)
    np.testing.assert_array_equal(other.conv1.weight.numpy(), model.conv1.weight.numpy())


def test_shapes_are_files_of_coco(tmp_path):
    photos = shapes.shapes(tmp_path, "train", count=6, augment=True)
    written = (tmp_path / "train.json").read_bytes()
    assert len(photos) == 6 and json.loads(written)["categories"][0]["name"] == "disc"
    sample = photos[3]
    assert sample["images"].shape == (3, 300, 300) and sample["boxes"].shape == (4, 4) and sample["image_id"] == 4
    real = sample["labels"] > 0
    sides = sample["boxes"][real][:, 2:] - sample["boxes"][real][:, :2]
    assert 1 <= real.sum() <= 4 and (sides > 25).all() and sample["boxes"].max() <= 300
    shapes.shapes(tmp_path, "train", count=6)  # what is there stays
    assert (tmp_path / "train.json").read_bytes() == written


def test_scores_are_those_of_pycocotools(tmp_path):
    pytest.importorskip("pycocotools", reason="pycocotools is not installed")
    from examples.vision.detector import CocoScores

    photos = shapes.shapes(tmp_path, "held_out", count=4)
    samples = [photos[i] for i in range(4)]
    batch = {name: flow.tensor(np.stack([s[name] for s in samples])) for name in ("boxes", "labels", "image_id")}
    right = {"boxes": batch["boxes"], "labels": batch["labels"], "count": (batch["labels"] > 0).sum(1)}
    right["scores"] = flow.ones(4, 4)
    scores = CocoScores(str(tmp_path / "held_out.json"))
    scores.update(right, batch)
    assert scores.compute() == {"mAP": pytest.approx(1.0), "mAP@50": pytest.approx(1.0)}
    scores.reset()
    scores.update(right | {"boxes": right["boxes"] + 200}, batch)
    assert scores.compute()["mAP"] < 0.1
    scores.reset()
    assert scores.compute()["mAP"] == 0


def commands():
    found = re.findall(r"^(?: {4}|\| `)(python -m sbpjax\.train examples\.vision[^`\n]*)", README, re.MULTILINE)
    pages = (ROOT / "docs" / "reference" / "image_models").glob("*.md")
    return found + [c for p in pages for c in re.findall(r"^python -m sbpjax\.train .*$", p.read_text(), re.MULTILINE)]


def test_commands_of_the_pages_fit_their_configurations():
    assert len(commands()) == 17
    for command in commands():
        words = shlex.split(command)[3:]
        config = override(load_config(words[0]), [word for word in words[1:] if not word.startswith("--")])
        assert config.trainer.max_steps == config.steps
        if config.get("model") is not None:
            fixed = getattr(flow.vision.models.model_config(config.model), "image_size", None)
            assert fixed in (None, config.size), command


@pytest.mark.slow
@pytest.mark.exhaustive  # minutes
@pytest.mark.parametrize("config", ["resnet", "vit", "swin"])
def test_the_scores(config, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main([f"examples.vision.{config}"])
    assert "at least 0.97 was to be reached" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.exhaustive  # minutes
def test_the_score_of_detection(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["examples.vision.detection"])
    assert "at least 0.5 was to be reached" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.exhaustive  # minutes
def test_detection_learns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick = ["steps=40", "trainer.log_every=5", "trainer.batch_size=8", "trainer.hooks.goal=null"]
    main(["examples.vision.detection", *quick])
    records = [json.loads(line) for line in Path("runs/detection/metrics.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in records if "loss" in record]
    assert losses[-1] < 0.8 * losses[0] and any("held_out/mAP@50" in record for record in records)


@pytest.mark.slow
@pytest.mark.exhaustive  # a minute
def test_the_notebook(tmp_path):
    command = [sys.executable, "-m", "examples.vision.transfer"]
    environment = {**__import__("os").environ, "PYTHONPATH": str(ROOT)}
    output = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, env=environment).stdout
    assert "tuned, held-out images" in output
    pictures = {path.name for path in (tmp_path / "runs" / "transfer").glob("*.png")}
    assert pictures == {"predictions.png", "confusion.png", "attention.png"}


def test_the_cells_of_the_notebook():
    text = (ROOT / "examples" / "vision" / "transfer.py").read_text()
    cells = re.split(r"^# %%(?: (\[markdown\]))?\n", text, flags=re.MULTILINE)[1:]
    for kind, cell in zip(cells[::2], cells[1::2], strict=True):
        if kind:
            assert all(line.startswith("#") for line in cell.splitlines() if line)
        else:
            compile(cell, "cell", "exec")
    assert len(cells) // 2 > 14
