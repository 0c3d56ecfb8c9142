"""Small benchmarks of what `sbpjax.vision` has beside its models, each beside a peer in the same run.

    python -m benchmarks.vision_features             # all, minutes on one core; needs timm and pycocotools
    python -m benchmarks.vision_features nms zoo     # some
    python -m benchmarks.vision_features --write     # into benchmarks/results/vision_features.md

Measured as in `benchmarks.features`: one process on one core, both sides in turns, CPU time. torchvision's wheels
cannot be imported beside PyTorch for CPU, so detectors and models of pixels stand beside their trunk alone, by timm.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.features import main  # first: it sets the environment

import numpy as np  # isort: skip
import torch

import sbpjax as flow
from sbpjax import vision
from sbpjax.vision.metrics import AveragePrecision
from sbpjax.vision.models.detection import SSD300
from sbpjax.vision.models.segmentation import FCN, DeepLabV3
from sbpjax.vision.ops import nms as keep_best
from sbpjax.vision.training import Poly, ScheduleRunner, Tanh
from tests.support.timm_alone import timm as timm_alone
from tests.vision.test_metrics import by_pycocotools, case

timm = timm_alone()
from timm import scheduler  # noqa: E402  # as soon as timm is there

RESULTS = Path(__file__).parent / "results" / "vision_features.md"


def schedules():
    """A thousand steps of two schedules, eager, on an optimizer of one parameter."""
    length = {"t_initial": 1000, "warmup_t": 10}

    def run(lib, makers):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(4))], lr=0.1)
        made = [make(optimizer) for make in makers]
        return lambda: [schedule.step(t) for schedule in made for t in range(1000)]

    ours = [lambda o: ScheduleRunner(o, Poly(**length)), lambda o: ScheduleRunner(o, Tanh(**length))]
    theirs = [lambda o: scheduler.PolyLRScheduler(o, **length), lambda o: scheduler.TanhLRScheduler(o, **length)]
    return "Poly and Tanh, 1,000 steps each", "timm", run(flow, ours), run(torch, theirs), 1


def nms():
    """Two thousand boxes, of which most overlap others."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 500, (2000, 2)).astype("f4")
    boxes = np.concatenate([low, low + rng.uniform(8, 100, (2000, 2)).astype("f4")], 1)
    scores = rng.random(2000).astype("f4")
    given = flow.tensor(boxes), flow.tensor(scores)

    def by_hand():
        areas, order, kept = (boxes[:, 2:] - boxes[:, :2]).prod(1), np.argsort(-scores, kind="stable"), []
        while len(order):
            first, order = order[0], order[1:]
            kept.append(first)
            sides = np.minimum(boxes[order, 2:], boxes[first, 2:]) - np.maximum(boxes[order, :2], boxes[first, :2])
            shared = sides.clip(0).prod(1)
            order = order[shared <= 0.5 * (areas[order] + areas[first] - shared)]
        return kept

    assert keep_best(*given, 0.5).tolist() == by_hand()
    return "nms of 2,000 boxes", "NumPy by hand", lambda: keep_best(*given, 0.5).numpy(), by_hand, 3


def average_precision():
    """Scores of COCO for 200 images."""
    found, true = case(0, images=200)

    def ours():
        score = AveragePrecision()
        for pair in zip(found, true, strict=True):
            score.update(*pair)
        return score.compute()

    return "AveragePrecision of 200 images", "pycocotools", ours, lambda: by_pycocotools(found, true), 1


def _images(size):
    x = np.random.default_rng(0).random((1, 3, size, size)).astype("f4")
    return flow.tensor(x), torch.from_numpy(x)


def _trunk(name, x, **options):
    model = timm.create_model(name, features_only=True, **options).eval()

    @torch.no_grad()
    def run():
        return model(x)[-1].sum().item()

    return run


def detection():
    """Detections of one image."""
    model, (x, y) = SSD300(21).eval(), _images(300)

    @flow.no_grad()
    def ours():
        return model.detect(x)["boxes"].numpy()

    return "SSD300, detections of an image, eager", "its trunk alone: timm's vgg16", ours, _trunk("vgg16", y), 1


def _pixels(kind, name):
    model, (x, y) = kind(21, "resnet50").eval(), _images(128)

    @flow.no_grad()
    def ours():
        return model(x).numpy()

    trunk = _trunk("resnet50", y, output_stride=8)
    return f"{name} on ResNet-50, an image of 128 pixels, eager", "its trunk alone: timm's resnet50", ours, trunk, 1


def fcn():
    """Logits of one image."""
    return _pixels(FCN, "FCN")


def deeplab():
    """Logits of one image."""
    return _pixels(DeepLabV3, "DeepLabV3")


def zoo():
    """A model by its name, with weights from a file of safetensors, which a model of the hub is once it is fetched."""
    path = Path(tempfile.mkdtemp(), "model.safetensors")
    flow.checkpoint.save_safetensors(vision.create_model("resnet18").state_dict(), path)
    return (
        "create_model of resnet18, with weights of a file",
        "timm",
        lambda: vision.create_model("resnet18", checkpoint=path),
        lambda: timm.create_model("resnet18", checkpoint_path=str(path)),
        1,
    )


ROWS = (schedules, nms, average_precision, detection, fcn, deeplab, zoo)

if __name__ == "__main__":
    main({function.__name__: function for function in ROWS}, RESULTS, "Beside the models of images")
