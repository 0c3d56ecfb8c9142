"""Faster R-CNN with a feature pyramid: region proposals, then a classification of each.

A first head proposes boxes at every level; the best of them are cut out of the level that fits their size, 7 × 7 bins
each, and a second head classifies and moves them. The gradient of the second does not go into where boxes are.
Parameters are named as in torchvision.

Shapes: B images, A anchors of all levels, R proposals of an image, C classes with the background as 0, G boxes of the
truth with padding.
"""

from __future__ import annotations

import math

import numpy as np

import sbpjax as flow
from sbpjax import Tensor, nn
from sbpjax.errors import OpError
from sbpjax.nn import functional as F
from sbpjax.vision.ops import batched_nms, clip_boxes_to_image, nms, roi_align
from sbpjax.vision.transforms.tensors import like

from . import targets
from .backbone import Pyramid, ResNetBody
from .targets import grid_anchors

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_ONES, _CODES = (1.0, 1.0, 1.0, 1.0), (10.0, 10.0, 5.0, 5.0)
_SHAPES = 3  # anchors at each place


class _Backbone(nn.Module):
    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.body = ResNetBody(depth)
        self.fpn = Pyramid(self.body.widths, width, further=False)

    def forward(self, images: Tensor) -> list[Tensor]:
        levels = self.fpn(self.body(images))
        return [*levels, F.max_pool2d(levels[-1], 1, 2)]


class _ProposalHead(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU()))
        self.cls_logits = nn.Conv2d(width, _SHAPES, 1)
        self.bbox_pred = nn.Conv2d(width, 4 * _SHAPES, 1)

    def forward(self, levels: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        scores, codes = [], []
        for x in levels:
            x = self.conv(x)
            scores.append(self.cls_logits(x).movedim(1, -1).reshape(x.shape[0], -1))
            codes.append(self.bbox_pred(x).movedim(1, -1).reshape(x.shape[0], -1, 4))
        return scores, codes


class _Proposals(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.head = _ProposalHead(width)


class _BoxHead(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.fc6, self.fc7 = nn.Linear(inputs, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.fc7(F.relu(self.fc6(x.flatten(1)))))


class _Predictor(nn.Module):
    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.cls_score, self.bbox_pred = nn.Linear(width, num_classes), nn.Linear(width, 4 * num_classes)


class _Regions(nn.Module):
    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.box_head = _BoxHead(width * 49, 1024)
        self.box_predictor = _Predictor(1024, num_classes)


class FasterRCNN(targets.Detector):
    """Detect objects in images of any size that is the same for a batch.

    Args:
        num_classes: C, with the background as class 0.
        depth: of the ResNet: 18, 34, 50 or 101.
        candidates: the best anchors of each level that may be proposed.
        proposals: R, the most that an image gets.
        anchors_sampled: anchors of an image whose proposals are trained, half of them with a box at most.
        regions_sampled: proposals of an image whose classes are trained, a quarter of them with a box at most.
        score_threshold: detections of lower scores are left out.
        overlap_threshold: of two detections of a class that overlap more, the better stays.
        detections: the most that an image gets.

    Source: Ren et al., "Faster R-CNN", 2015, and Lin et al., "Feature Pyramid Networks", 2016; names and numbers of
    torchvision's `fasterrcnn_resnet50_fpn`, whose state dict it loads.
    """

    def __init__(
        self,
        num_classes: int = 91,
        depth: int = 50,
        *,
        candidates: int = 1000,
        proposals: int = 1000,
        anchors_sampled: int = 256,
        regions_sampled: int = 512,
        score_threshold: float = 0.05,
        overlap_threshold: float = 0.5,
        detections: int = 100,
    ) -> None:
        super().__init__()
        self.num_classes, self.candidates, self.proposals, self.detections = (
            num_classes,
            candidates,
            proposals,
            detections,
        )
        self.anchors_sampled, self.regions_sampled = anchors_sampled, regions_sampled
        self.score_threshold, self.overlap_threshold = score_threshold, overlap_threshold
        self.backbone = _Backbone(depth, 256)
        self.rpn = _Proposals(256)
        self.roi_heads = _Regions(256, num_classes)
        for module in self.rpn.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[np.ndarray]]:
        """Return the levels, and for each scores ``(B, a)``, differences from anchors ``(B, a, 4)``, and anchors.

        Args:
            images: ``(B, 3, H, W)``, values from 0 to 1.

        Raises:
            OpError: images are of another shape.
        """
        if images.ndim != 4 or images.shape[1] != 3:
            seen = f"images {tuple(images.shape)}"
            raise OpError("FasterRCNN()(images)", seen, "images are (B, 3, H, W)", "flow.stack([image, ...])")
        mean, std = (like(images, values).reshape(1, 3, 1, 1) for values in (_MEAN, _STD))
        levels = self.backbone((images - mean) / std)
        scores, codes = self.rpn.head(levels)
        grids = [tuple(level.shape[-2:]) for level in levels]
        anchors = grid_anchors(tuple(images.shape[-2:]), grids, [(32,), (64,), (128,), (256,), (512,)])
        return levels, scores, codes, anchors

    def propose(self, images: Tensor, scores: list[Tensor], codes: list[Tensor], anchors: list[np.ndarray]) -> tuple:
        """Return proposals ``(B, R, 4)``, and which are valid ``(B, R)``; no gradient."""
        boxes, best, numbers = [], [], []
        for i, (score, code, at) in enumerate(zip(scores, codes, anchors, strict=True)):
            most, place = score.detach().topk(min(self.candidates, score.shape[1]), 1)
            start = targets.rows(like(code, at)[None].expand(code.shape[0], -1, -1), place)
            found = targets.decode(targets.rows(code.detach(), place), start, _ONES)
            boxes.append(clip_boxes_to_image(found, tuple(images.shape[-2:])))
            best.append(most)
            numbers.append(flow.full_like(place, i))
        all_boxes, all_scores = flow.cat(boxes, 1), flow.sigmoid(flow.cat(best, 1))
        sides = all_boxes[..., 2:] - all_boxes[..., :2]
        all_scores = flow.where((sides >= 1e-3).all(-1), all_scores, -flow.inf)
        kept, _ = batched_nms(all_boxes, all_scores, flow.cat(numbers, 1), 0.7, size=self.proposals)
        valid = kept >= 0
        return flow.where(valid[..., None], targets.rows(all_boxes, kept.clamp(min=0)), 0.0), valid

    def regions(self, images: Tensor, levels: list[Tensor], boxes: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits ``(B, R, C)`` and differences from boxes ``(B, R, C, 4)`` of boxes ``(B, R, 4)``."""
        batch, count = boxes.shape[:2]
        number = like(boxes, np.arange(batch, dtype=np.float32))[:, None, None].expand(batch, count, 1)
        rois = flow.cat([number, boxes], -1).reshape(-1, 5)
        sides = (rois[:, 3:] - rois[:, 1:3]).clamp(min=0)
        level = (4 + flow.log2((sides[:, 0] * sides[:, 1]).sqrt().clamp(min=1e-6) / 224) + 1e-6).floor().clamp(2, 5)
        found = 0.0
        for i, x in enumerate(levels[:4]):  # of all boxes at all levels, so that shapes do not depend on their sizes
            scale = 2.0 ** round(math.log2(x.shape[-2] / images.shape[-2]))
            cut = roi_align(x, rois, 7, scale, sampling_ratio=2)
            found = found + flow.where((level == i + 2)[:, None, None, None], cut, 0.0)
        inside = self.roi_heads.box_head(found)
        logits = self.roi_heads.box_predictor.cls_score(inside)
        codes = self.roi_heads.box_predictor.bbox_pred(inside)
        return logits.reshape(batch, count, -1), codes.reshape(batch, count, -1, 4)

    def loss(self, images: Tensor, boxes: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the losses of a batch.

        Args:
            images: ``(B, 3, H, W)``.
            boxes: ``(B, G, 4)``: left, top, right, bottom in pixels of the image.
            labels: ``(B, G)``, 1 to C - 1; -1 for padding, see `pad_targets`.

        Returns:
            ``objectness`` and ``rpn_box_reg`` of proposals, ``classifier`` and ``box_reg`` of what they are. Which of
            the anchors and proposals are trained is drawn from the default generator.
        """
        levels, scores, codes, anchors = self(images)
        start = like(images, np.concatenate(anchors))
        number, kind = targets.match(targets.overlaps(boxes, labels, start), 0.3, 0.7, best_too=True)
        sampled = sample(kind, self.anchors_sampled, 0.5)
        found, count = sampled & (kind > 0), sampled.sum().clamp(min=1)
        by_anchor = F.binary_cross_entropy_with_logits(flow.cat(scores, 1), (kind > 0).float(), reduction="none")
        wanted = targets.encode(targets.rows(boxes, number), start[None], _ONES)
        losses = {
            "objectness": flow.where(sampled, by_anchor, 0.0).sum() / count,
            "rpn_box_reg": _box_loss(flow.cat(codes, 1), wanted, found) / count,
        }
        rois, valid = self.propose(images, scores, codes, anchors)
        rois, valid = flow.cat([rois, boxes], 1), flow.cat([valid, labels >= 0], 1)  # the truth is proposed too
        number, kind = targets.match(targets.overlaps(boxes, labels, rois), 0.5, 0.5, best_too=False)
        kind = flow.where(valid, kind, -1)
        sampled = sample(kind, self.regions_sampled, 0.25)
        size = min(self.regions_sampled, rois.shape[1])
        at = sampled.long().argsort(1, descending=True, stable=True)[:, :size]  # those first
        sampled, kind, number = (x.gather(1, at) for x in (sampled, kind, number))
        rois = targets.rows(rois, at)
        logits, codes = self.regions(images, levels, rois)
        found, count = sampled & (kind > 0), sampled.sum().clamp(min=1)
        kinds = flow.where(found, targets.rows(labels, number), 0)
        by_class = F.cross_entropy(logits.reshape(-1, self.num_classes), kinds.reshape(-1), reduction="none")
        own = codes.gather(2, kinds[..., None, None].expand(*kinds.shape, 1, 4))[:, :, 0]
        wanted = targets.encode(targets.rows(boxes, number), rois, _CODES)
        return losses | {
            "classifier": flow.where(sampled, by_class.reshape(kinds.shape), 0.0).sum() / count,
            "box_reg": _box_loss(own, wanted, found) / count,
        }

    def detect(self, images: Tensor) -> dict[str, Tensor]:
        """Return what is in images, with static shapes; as of `SSD300.detect`.

        Args:
            images: ``(B, 3, H, W)``.
        """
        levels, scores, codes, anchors = self(images)
        rois, valid = self.propose(images, scores, codes, anchors)
        logits, codes = self.regions(images, levels, rois)
        boxes = targets.decode(codes, rois[:, :, None], _CODES)[:, :, 1:].transpose(1, 2)  # (B, C - 1, R, 4)
        boxes = clip_boxes_to_image(boxes, tuple(images.shape[-2:]))
        best = flow.softmax(logits, -1)[..., 1:].transpose(1, 2)
        sides = boxes[..., 2:] - boxes[..., :2]
        counts = valid[:, None] & (best > self.score_threshold) & (sides >= 1e-2).all(-1)
        best = flow.where(counts, best, -flow.inf)
        kept, _ = nms(boxes, best, self.overlap_threshold, size=min(self.detections, best.shape[-1]))
        there, kept = kept >= 0, kept.clamp(min=0)
        batch, classes, size = kept.shape
        best = flow.where(there, best.gather(-1, kept), -flow.inf).reshape(batch, -1)
        corners = boxes.gather(2, kept[..., None].expand(*kept.shape, 4)).reshape(batch, -1, 4)
        kinds = like(best, [[float(c)] * size for c in range(1, classes + 1)]).long().reshape(1, -1)
        return targets.keep_best(corners, best, kinds.expand(batch, -1), self.detections)


def sample(kind: Tensor, size: int, share: float) -> Tensor:
    """Return which of the rows ``(B, n)`` are trained: so many, a share of them with a box at most, drawn at random."""
    order = flow.rand_like(kind.float())
    positive = _rank(flow.where(kind > 0, order, 2.0)) < int(size * share)
    positive = positive & (kind > 0)
    left = size - positive.sum(1, keepdim=True)
    return positive | ((kind == 0) & (_rank(flow.where(kind == 0, order, 2.0)) < left))


def _rank(x: Tensor) -> Tensor:
    return x.argsort(1).argsort(1)


def _box_loss(codes: Tensor, wanted: Tensor, found: Tensor) -> Tensor:
    wanted = flow.where(found[..., None], wanted, 0.0)
    by_box = F.smooth_l1_loss(codes, wanted, beta=1 / 9, reduction="none").sum(-1)
    return flow.where(found, by_box, 0.0).sum()
