"""Parts of the detection run: a narrow SSD300, its detections, and their COCO scores."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.vision.models.detection import SSD300
from sbpjax.vision.ops import box_convert

from .shapes import KINDS


class SmallSSD(SSD300):
    """SSD300 for the three kinds of shapes, with few channels, and batch norms so that it trains from scratch.

    The paper begins with a VGG16 that was trained on ImageNet. Twenty convolutions that were not, and have no norms,
    pass on so little of an image that a detector finds no shapes in it for a thousand steps.

    Args:
        width: channels of the first convolutions; 64 in the paper.
    """

    def __init__(self, width: int = 8) -> None:
        super().__init__(1 + len(KINDS), width=width, detections=20, candidates=100)
        for block in [one for one in self.backbone.modules() if isinstance(one, nn.Sequential)]:
            for name, layer in block.named_children():
                if isinstance(layer, nn.Conv2d):
                    setattr(block, name, nn.Sequential(layer, nn.BatchNorm2d(layer.out_channels)))

    def loss(
        self, images: flow.Tensor, boxes: flow.Tensor, labels: flow.Tensor, image_id: Any = None
    ) -> dict[str, flow.Tensor]:
        """Return the losses of `SSD300.loss`, whose sum is minimised; the numbers of images are for the scores."""
        return super().loss(images, boxes, labels)


def detections(model: SSD300, images: flow.Tensor, **_: Any) -> dict[str, flow.Tensor]:
    """Return the detections, see `SSD300.detect`."""
    return model.detect(images)


class CocoScores:
    """An evaluator: pycocotools' scores of detections.

    Args:
        annotations: the ground-truth file, in COCO's format.
    """

    def __init__(self, annotations: str) -> None:
        self.annotations = annotations
        self.rows: list[dict[str, Any]] = []
        self.seen: list[int] = []

    def reset(self) -> None:
        """Forget all batches."""
        self.rows, self.seen = [], []

    def update(self, outputs: dict[str, flow.Tensor], batch: dict[str, flow.Tensor]) -> None:
        """Take the detections of a batch."""
        found = {name: whole(value) for name, value in (outputs | {"image_id": batch["image_id"]}).items()}
        self.seen += found["image_id"].tolist()
        for i, image in enumerate(found["image_id"].tolist()):
            count = int(found["count"][i])
            boxes = box_convert(flow.tensor(found["boxes"][i, :count]), "xyxy", "xywh").numpy()
            for box, score, label in zip(boxes, found["scores"][i], found["labels"][i], strict=False):
                about = {"image_id": image, "category_id": int(label)}
                self.rows.append(about | {"bbox": box.tolist(), "score": float(score)})

    def compute(self) -> dict[str, float]:
        """Return ``mAP`` and ``mAP@50``."""
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        if not self.rows:
            return {"mAP": 0.0, "mAP@50": 0.0}
        with contextlib.redirect_stdout(io.StringIO()):
            truth = COCO(self.annotations)
            judge = COCOeval(truth, truth.loadRes(self.rows), "bbox")
            judge.params.imgIds = sorted(self.seen)
            judge.evaluate()
            judge.accumulate()
            judge.summarize()
        return {"mAP": float(judge.stats[0]), "mAP@50": float(judge.stats[1])}


def whole(x: flow.Tensor) -> np.ndarray:
    """Return all of a tensor that may be divided."""
    return (x.to_global(sbp=[flow.sbp.broadcast] * len(x.sbp)) if x.is_global else x).numpy()
