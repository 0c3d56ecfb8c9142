"""Labels and boxes that a compiled step could not refuse are told on the host, before it."""

import functools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, optim, vision
from sbpjax.errors import DataError, TrainError
from sbpjax.train import Evaluation, Trainer
from sbpjax.utils.data import DataLoader, Dataset
from sbpjax.vision.models.detection import SSD300, FasterRCNN, RetinaNet
from sbpjax.vision.models.label_checks import check_boxes, check_labels
from sbpjax.vision.models.segmentation import FCN

TINY = {"depths": (1, 1, 1, 1), "width": 8}
# Labels, num_classes, and what is said of them.
LABELS = {
    "one too many": ([0, 3, 1], 3, "3 is no class", "num_classes=4"),
    "from 1 on": ([1, 2, 3], 3, "labels from 1 to 3", "labels - 1: they begin with 0"),
    "negative": ([0, -1], 3, "-1 is no class", "labels that begin with 0"),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels(case):
    labels, classes, seen, fix = LABELS[case]
    with pytest.raises(DataError) as caught:
        check_labels(np.array(labels), "ResNet", classes)
    assert seen in str(caught.value) and f"fix:  {fix}" in str(caught.value)
    assert f"ResNet has num_classes={classes}, so labels are 0 to {classes - 1}, or -100 for none" in str(caught.value)


def test_labels_that_are_right():
    for labels in ([0, 2, -100], [], [0.5, 7.0]):  # shares of classes are the loss's affair
        check_labels(np.array(labels), "ResNet", 3)
    check_labels(np.array([512]), "ResNet", 0)  # no classifier


# A box, the kind of mistake, and what mends it.
BOXES = {
    "no area": ([20, 20, 20, 40], "has no area", "SanitizeBoxes"),
    "left, top, width, height": ([200, 200, 30, 40], "has no area", "box_convert"),
    "not finite": ([0, 0, np.nan, 9], "is not finite", "annotations"),
    "outside": ([400, 10, 450, 50], "is outside an image of 300 × 300", "Resize"),
    "shares of the image": ([0.1, 0.1, 0.4, 0.9], "boxes up to 0.9", r"boxes \* \[300, 300, 300, 300\]"),
}


@pytest.mark.parametrize("case", BOXES)
def test_boxes(case):
    box, seen, fix = BOXES[case]
    boxes, labels = np.zeros((2, 3, 4), np.float32), np.full((2, 3), -1)
    boxes[1, 0], labels[1, 0] = box, 1
    with pytest.raises(DataError, match=rf"{seen}[\s\S]*in pixels of the image[\s\S]*{fix}"):
        check_boxes(boxes, labels, "SSD300", (300, 300))
    check_boxes(boxes, np.full((2, 3), -1), "SSD300", (300, 300))  # padding may be anything


@pytest.mark.parametrize(("kind", "first"), [(SSD300, 1), (FasterRCNN, 1), (RetinaNet, 0)])
def test_detectors_ask_for_their_own_classes(kind, first):
    model = kind.__new__(kind)
    flow.nn.Module.__init__(model)
    model.num_classes = 3
    images, boxes = np.zeros((1, 3, 300, 300), np.float32), np.array([[[10, 10, 50, 60], [0, 0, 0, 0]]], np.float32)
    for label in range(first, 3):
        model.check_batch((images, boxes, np.array([[label, -1]])))
    for label in (first - 1, 3):
        if label != -1:
            with pytest.raises(DataError, match=f"labels are {first} to 2, or -1"):
                model.check_batch({"images": images, "boxes": boxes, "labels": np.array([[label, -1]])})


def test_masks():
    with flow.abstract():
        model = FCN(3, vision.create_model("resnet18", **TINY))
    model.check_batch((None, np.array([[[0, 2], [255, 1]]])))
    with pytest.raises(DataError, match=r"7 is no class[\s\S]*pixels are 0 to 2, or 255"):
        model.check_batch({"masks": np.array([[[0, 7]]])})


class Photos(Dataset):
    """Images whose labels are any; with names of classes if wanted."""

    def __init__(self, labels, classes=None):
        self.labels = labels
        if classes is not None:
            self.classes = classes

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return np.zeros((3, 32, 32), np.float32), np.int64(self.labels[index])


def run(data, *, classes=3, hooks=(), **options):
    model = vision.create_model("resnet18", num_classes=classes, **TINY)
    parts = {"model": model, "optimizer": functools.partial(optim.SGD, lr=0.1), "data": data, "max_steps": 1}
    return Trainer(**{**parts, "batch_size": 4} | options, hooks=hooks, writers=[])


def test_a_trainer_refuses_more_classes_than_the_model_has():
    names = ["cat", "dog", "horse", "owl"]
    with pytest.raises(DataError, match=r"4 classes: cat, dog, horse, owl[\s\S]*num_classes=3[\s\S]*num_classes=4"):
        run(Photos([0] * 8, names))
    with pytest.raises(DataError, match="4 classes"):
        run(Photos([0] * 8), hooks=[Evaluation(Photos([0] * 8, names))])
    loader = DataLoader(Photos([0] * 8, names), batch_size=4)
    with pytest.raises(DataError, match="4 classes"):
        run(loader, batch_size=None)


def test_a_trainer_refuses_other_classes_in_the_evaluation():
    expected = r"evaluating on validation[\s\S]*2 classes, 3 in training: without b[\s\S]*the same folders"
    with pytest.raises(TrainError, match=expected):
        run(Photos([0] * 8, ["a", "b", "c"]), hooks=[Evaluation(Photos([0] * 8, ["a", "c"]))])
    with pytest.raises(TrainError, match="with d besides"):
        run(Photos([0] * 8, ["a"]), hooks=[Evaluation(Photos([0] * 8, ["a", "d"]))])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_trainer_refuses_a_label_before_its_step(workers):
    made = run(Photos([0, 1, 2, 9]), workers=workers, parallel=models.Parallel(data=2, device="cpu"))
    with pytest.raises(DataError, match=r"9 is no class[\s\S]*num_classes=3[\s\S]*num_classes=10"):
        made.fit()
    assert made.step == 0 and not made.train_step._g.programs


def test_a_loss_of_ones_own_may_have_other_labels():
    made = run(Photos([0, 1, 2, 9], ["a", "b", "c", "d"]), loss=lambda model, images, labels: model(images).mean())
    assert made.loader.check is None
