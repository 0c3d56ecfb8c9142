"""RetinaNet: one-stage detector with a feature pyramid and focal loss.

Shapes: B images, C classes, A anchors of all levels, G boxes of the truth with padding.
"""

from __future__ import annotations

import math

import numpy as np

import sbpjax as flow
from sbpjax import Tensor, nn
from sbpjax.errors import OpError
from sbpjax.nn import functional as F
from sbpjax.vision.ops import batched_nms, clip_boxes_to_image, sigmoid_focal_loss
from sbpjax.vision.transforms.tensors import like

from . import targets
from .backbone import ResNetFPN
from .targets import areas_by_level, grid_anchors

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_CODES = (1.0, 1.0, 1.0, 1.0)
_SHAPES = 9  # boxes at each place: three sizes, three proportions


class _Tower(nn.Module):
    """Four convolutions, and one more with the answers."""

    def __init__(self, width: int, columns: int, last: str) -> None:
        super().__init__()
        self.columns, self.last = columns, last
        self.conv = nn.Sequential(*[nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU()) for _ in range(4)])
        setattr(self, last, nn.Conv2d(width, _SHAPES * columns, 3, padding=1))

    def forward(self, levels: list[Tensor]) -> list[Tensor]:
        """Return ``(B, places * shapes, columns)`` for each level."""
        found = []
        for x in levels:
            x = getattr(self, self.last)(self.conv(x)).movedim(1, -1)
            found.append(x.reshape(x.shape[0], -1, self.columns))
        return found


class _Head(nn.Module):
    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.classification_head = _Tower(width, num_classes, "cls_logits")
        self.regression_head = _Tower(width, 4, "bbox_reg")

    def forward(self, levels: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return self.classification_head(levels), self.regression_head(levels)


class RetinaNet(targets.Detector):
    """Detect objects in images of any size that is the same for a batch.

    Args:
        num_classes: C; classes are 0 to C - 1, of COCO 91 with the unused ones.
        depth: of the ResNet: 18, 34, 50 or 101.
        score_threshold: detections of lower scores are left out.
        overlap_threshold: of two detections of a class that overlap more, the better stays.
        candidates: the best of each level that are considered.
        detections: the most that an image gets.

    Source: Lin et al., "Focal Loss for Dense Object Detection", 2017; names and numbers of torchvision's
    `retinanet_resnet50_fpn`, whose state dict it loads.
    """

    FIRST_LABEL = 0

    def __init__(
        self,
        num_classes: int = 91,
        depth: int = 50,
        *,
        score_threshold: float = 0.05,
        overlap_threshold: float = 0.5,
        candidates: int = 1000,
        detections: int = 300,
    ) -> None:
        super().__init__()
        self.num_classes, self.candidates, self.detections = num_classes, candidates, detections
        self.score_threshold, self.overlap_threshold = score_threshold, overlap_threshold
        self.backbone = ResNetFPN(depth)
        self.head = _Head(self.backbone.width, num_classes)
        for module in self.head.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)
        # At first every class has a probability of 1 in 100, so that background does not outweigh all.
        nn.init.constant_(self.head.classification_head.cls_logits.bias, -math.log(99))

    def forward(self, images: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Return for each level logits ``(B, a, C)`` and differences from anchors ``(B, a, 4)``.

        Args:
            images: ``(B, 3, H, W)``, values from 0 to 1.

        Raises:
            OpError: images are of another shape.
        """
        if images.ndim != 4 or images.shape[1] != 3:
            seen = f"images {tuple(images.shape)}"
            raise OpError("RetinaNet()(images)", seen, "images are (B, 3, H, W)", "flow.stack([image, ...])")
        mean, std = (like(images, values).reshape(1, 3, 1, 1) for values in (_MEAN, _STD))
        return self.head(self.backbone((images - mean) / std))

    def anchors(self, images: Tensor, logits: list[Tensor]) -> list[np.ndarray]:
        """Return the anchors of each level, ``(a, 4)``."""
        height, width = images.shape[-2:]
        halved = lambda side, times: side if not times else halved(-(-side // 2), times - 1)  # noqa: E731
        grids = [(halved(height, level), halved(width, level)) for level in range(3, 8)]
        found = grid_anchors((height, width), grids, areas_by_level())
        assert [len(one) for one in found] == [one.shape[1] for one in logits]
        return found

    def loss(self, images: Tensor, boxes: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the losses of a batch.

        Args:
            images: ``(B, 3, H, W)``.
            boxes: ``(B, G, 4)``: left, top, right, bottom in pixels of the image.
            labels: ``(B, G)``, 0 to C - 1; -1 for padding, see `pad_targets`.

        Returns:
            ``classification`` and ``bbox_regression``, each the mean over images of sums by the number of anchors that
            have a box.
        """
        logits, codes = self(images)
        anchors = like(images, np.concatenate(self.anchors(images, logits)))
        logits, codes = flow.cat(logits, 1), flow.cat(codes, 1)
        number, kind = targets.match(targets.overlaps(boxes, labels, anchors), 0.4, 0.5, best_too=True)
        found = kind > 0
        count = found.sum(1).clamp(min=1)
        kinds = flow.where(found, targets.rows(labels, number), self.num_classes)
        hot = F.one_hot(kinds, self.num_classes + 1)[..., :-1].to(logits.dtype)
        by_class = sigmoid_focal_loss(logits, hot).sum(-1)
        wanted = targets.encode(targets.rows(boxes, number), anchors[None], _CODES)
        by_box = (codes - flow.where(found[..., None], wanted, 0.0)).abs().sum(-1)
        return {
            "classification": (flow.where(kind >= 0, by_class, 0.0).sum(1) / count).mean(),
            "bbox_regression": (flow.where(found, by_box, 0.0).sum(1) / count).mean(),
        }

    def detect(self, images: Tensor) -> dict[str, Tensor]:
        """Return what is in images, with static shapes; as of `SSD300.detect`.

        Args:
            images: ``(B, 3, H, W)``.
        """
        logits, codes = self(images)
        boxes, scores, labels = [], [], []
        for level, level_codes, anchors in zip(logits, codes, self.anchors(images, logits), strict=True):
            flat = flow.sigmoid(level).reshape(level.shape[0], -1)
            best, at = flat.topk(min(self.candidates, flat.shape[1]), 1)
            place = at // self.num_classes
            corners = targets.rows(like(level_codes, anchors)[None].expand(level.shape[0], -1, -1), place)
            found = targets.decode(targets.rows(level_codes, place), corners, _CODES)
            boxes.append(clip_boxes_to_image(found, tuple(images.shape[-2:])))
            scores.append(flow.where(best > self.score_threshold, best, -flow.inf))
            labels.append(at % self.num_classes)
        all_boxes, all_scores, all_labels = flow.cat(boxes, 1), flow.cat(scores, 1), flow.cat(labels, 1)
        kept, _ = batched_nms(all_boxes, all_scores, all_labels, self.overlap_threshold, size=self.detections)
        valid, kept = kept >= 0, kept.clamp(min=0)
        return {
            "boxes": flow.where(valid[..., None], targets.rows(all_boxes, kept), 0.0),
            "scores": flow.where(valid, all_scores.gather(1, kept), 0.0),
            "labels": flow.where(valid, all_labels.gather(1, kept), targets.PADDING),
            "count": valid.sum(1),
        }
