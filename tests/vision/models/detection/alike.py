"""Our detectors with recorded weights and inputs, and the comparison with what torchvision gave."""

import numpy as np

import sbpjax as flow
from sbpjax.vision.models.detection import SSD300, FasterRCNN, RetinaNet, pad_targets
from tests.vision.models.detection.record import BOXES, CLASSES, DATA, LABELS, images, weights

TOLERANCE = 1e-3
ALL = {"proposals": 300, "anchors_sampled": 10**5, "regions_sampled": 4000}  # nothing is drawn
MAKE = {
    "ssd": lambda: SSD300(CLASSES),
    "retinanet": lambda: RetinaNet(CLASSES, 18),
    "faster_rcnn": lambda: FasterRCNN(CLASSES, 18, **ALL),
}


def model(kind):
    found = MAKE[kind]()
    drawn = weights({name: tuple(value.shape) for name, value in found.state_dict().items()})
    found.load_state_dict({name: flow.tensor(value) for name, value in drawn.items()})
    return found


def batch(kind, **placed):
    samples = [{"boxes": boxes, "labels": labels} for boxes, labels in zip(BOXES, LABELS, strict=True)]
    return [flow.tensor(x, **placed) for x in (images(kind), *pad_targets(samples, 5))]


def facts(kind):
    with np.load(DATA / f"{kind}.npz") as file:
        return dict(file)


class Losses(flow.nn.Graph):
    def __init__(self, detector, optimizer=None):
        super().__init__()
        self.detector = detector
        if optimizer is not None:
            self.add_optimizer(optimizer)
        self.trains = optimizer is not None

    def build(self, *given):
        losses = self.detector.loss(*given)
        total = sum(losses.values())
        if self.trains:
            total.backward()
        return losses


class Detections(flow.nn.Graph):
    def __init__(self, detector):
        super().__init__()
        self.detector = detector

    def build(self, given):
        return self.detector.detect(given)


def is_one_program(step, given):
    """Another batch, with other boxes in other places, runs the very program, and that asks nothing of the host."""
    images, boxes, labels = given
    step(images, boxes.flip(0, 1), labels.flip(0, 1))
    assert len(step._g.programs) == 1
    text = step.program.lower().as_text()
    assert "convolution" in text  # it is the text of the step
    for way_to_the_host in ("callback", "infeed", "outfeed", "stablehlo.send", "stablehlo.recv"):
        assert way_to_the_host not in text


def losses_agree(kind, found):
    for name, loss in found.items():
        want = facts(kind)[f"loss/loss_{name}" if kind == "faster_rcnn" else f"loss/{name}"]
        np.testing.assert_allclose(loss.item(), want, rtol=TOLERANCE)


def detections_agree(kind, found):
    """Every detection of one has its like in the other; those near the worst score may be others."""
    for i in (0, 1):
        count = found["count"][i].item()
        want = {name: facts(kind)[f"{i}/{name}"] for name in ("boxes", "scores", "labels")}
        got = {name: found[name][i].numpy() for name in want}
        assert count == len(want["scores"]) and (got["labels"][count:] == -1).all() and not got["scores"][count:].any()
        got = {name: values[:count] for name, values in got.items()}
        last = want["scores"].min() + TOLERANCE
        for some, others in ((want, got), (got, want)):
            for box, score, label in zip(*[some[name][some["scores"] > last] for name in some], strict=True):
                same = others["labels"] == label
                apart = np.maximum(abs(others["boxes"][same] - box).max(1), abs(others["scores"][same] - score))
                assert apart.min() < TOLERANCE
        assert (np.diff(got["scores"]) <= 0).all()
