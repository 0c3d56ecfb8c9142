"""SSD300 with VGG16: one-stage detector on six feature maps; parameters have torchvision's names.

Shapes: B images, C classes with the background as 0, A = 8732 anchors, G boxes of the truth with padding.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax import Tensor, nn
from sbpjax.errors import ConfigError, OpError
from sbpjax.nn import functional as F
from sbpjax.vision.ops import clip_boxes_to_image, nms
from sbpjax.vision.transforms.tensors import like

from . import targets
from .targets import default_boxes

_MEAN = (0.48235, 0.45882, 0.40784)  # of values from 0 to 1; then they are multiplied by 255, as Caffe's VGG16 wants
_CODES = (10.0, 10.0, 5.0, 5.0)
_SHAPES = (4, 6, 6, 6, 4, 4)  # boxes at each place of a feature map


def _convolutions(channels: int, widths: list[int]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
        channels = width
    return layers


class VGGFeatures(nn.Module):
    """VGG16 up to its fifth stage, with dense layers converted to convolutions, and four further downsampling stages.

    Args:
        width: channels of the first convolutions; those of all others are multiples of it.

    Attributes:
        channels: of the six maps.
    """

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        w = width
        self.channels = (8 * w, 16 * w, 8 * w, 4 * w, 4 * w, 4 * w)
        self.scale_weight = nn.Parameter(flow.full((8 * w,), 20.0))
        self.features = nn.Sequential(
            *_convolutions(3, [w, w]), nn.MaxPool2d(2), *_convolutions(w, [2 * w, 2 * w]), nn.MaxPool2d(2),
            *_convolutions(2 * w, [4 * w] * 3), nn.MaxPool2d(2, ceil_mode=True), *_convolutions(4 * w, [8 * w] * 3),
        )  # fmt: skip
        wide = nn.Sequential(
            nn.MaxPool2d(3, 1, 1), nn.Conv2d(8 * w, 16 * w, 3, padding=6, dilation=6), nn.ReLU(),
            nn.Conv2d(16 * w, 16 * w, 1), nn.ReLU(),
        )  # fmt: skip
        self.extra = nn.ModuleList(
            [
                nn.Sequential(nn.MaxPool2d(2), *_convolutions(8 * w, [8 * w] * 3), wide),
                self._make_extra_layer(16 * w, 4 * w, 8 * w, stride=2, padding=1),
                self._make_extra_layer(8 * w, 2 * w, 4 * w, stride=2, padding=1),
                self._make_extra_layer(4 * w, 2 * w, 4 * w),
                self._make_extra_layer(4 * w, 2 * w, 4 * w),
            ]
        )

    @staticmethod
    def _make_extra_layer(channels: int, narrow: int, wide: int, **options: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(channels, narrow, 1), nn.ReLU(), nn.Conv2d(narrow, wide, 3, **options), nn.ReLU()
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return six maps, from 38 × 38 to 1 × 1 places."""
        x = self.features(x)
        found = [self.scale_weight.reshape(1, -1, 1, 1) * F.normalize(x)]  # each place to a length of 20, at first
        for step in self.extra:
            x = step(x)
            found.append(x)
        return found


class _ConvPredictor(nn.Module):
    """A convolution for each feature map, whose answers are brought together."""

    def __init__(self, columns: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.columns = columns
        self.module_list = nn.ModuleList(
            nn.Conv2d(width, columns * shapes, 3, padding=1) for width, shapes in zip(widths, _SHAPES, strict=True)
        )

    def forward(self, maps: list[Tensor]) -> Tensor:
        """Return ``(B, A, columns)``."""
        found = []
        for layer, x in zip(self.module_list, maps, strict=True):
            x = layer(x).movedim(1, -1)  # (B, H, W, shapes * columns)
            found.append(x.reshape(x.shape[0], -1, self.columns))
        return flow.cat(found, 1)


class _Head(nn.Module):
    def __init__(self, num_classes: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.classification_head = _ConvPredictor(num_classes, widths)
        self.regression_head = _ConvPredictor(4, widths)

    def forward(self, maps: list[Tensor]) -> tuple[Tensor, Tensor]:
        return self.classification_head(maps), self.regression_head(maps)


class SSD300(targets.Detector):
    """Detect objects in images of 300 × 300 pixels.

    Args:
        num_classes: C, with the background as class 0.
        score_threshold: detections of lower scores are left out.
        overlap_threshold: of two detections of a class that overlap more, the better stays.
        candidates: the best of each class that are considered.
        detections: the most that an image gets.
        width: channels of the first convolutions, and so of all; 64 for torchvision's weights.

    Source: Liu et al., "SSD: Single Shot MultiBox Detector", 2016; names and numbers of torchvision's `ssd300_vgg16`,
    whose state dict it loads.

    Raises:
        ConfigError: there is no class beside the background.
    """

    size = 300

    def __init__(
        self,
        num_classes: int = 91,
        *,
        score_threshold: float = 0.01,
        overlap_threshold: float = 0.45,
        candidates: int = 400,
        detections: int = 200,
        width: int = 64,
    ) -> None:
        super().__init__()
        if num_classes < 2:
            rule = "class 0 is the background, so there are two classes at least"
            raise ConfigError(f"SSD300(num_classes={num_classes})", f"{num_classes}", rule, "num_classes=1 + yours")
        self.num_classes, self.detections, self.candidates = num_classes, detections, candidates
        self.score_threshold, self.overlap_threshold = score_threshold, overlap_threshold
        self.backbone = VGGFeatures(width)
        self.head = _Head(num_classes, self.backbone.channels)
        self._anchors = default_boxes(self.size)
        for name, module in self.named_modules():
            if isinstance(module, nn.Conv2d):
                old = name.startswith(("backbone.features", "backbone.extra.0")) and "extra.0.7" not in name
                fill = nn.init.kaiming_normal_ if old else nn.init.xavier_uniform_
                fill(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of classes ``(B, A, C)`` and boxes as differences from anchors ``(B, A, 4)``.

        Args:
            images: ``(B, 3, 300, 300)``, values from 0 to 1.

        Raises:
            OpError: images are of another shape.
        """
        if tuple(images.shape[1:]) != (3, self.size, self.size):
            seen = f"images {tuple(images.shape)}"
            raise OpError("SSD300()(images)", seen, "images are (B, 3, 300, 300)", "transforms.Resize((300, 300))")
        mean = like(images, _MEAN).reshape(1, 3, 1, 1)
        return self.head(self.backbone((images - mean) * 255.0))

    def loss(self, images: Tensor, boxes: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the losses of a batch.

        Args:
            images: ``(B, 3, 300, 300)``.
            boxes: ``(B, G, 4)``: left, top, right, bottom in pixels of the image.
            labels: ``(B, G)``, 1 to C - 1; -1 for padding, see `pad_targets`.

        Returns:
            ``classification`` and ``bbox_regression``. Of anchors without a box, three times as many count as of those
            with one: the worst.
        """
        logits, codes = self(images)
        anchors = like(logits, self._anchors)
        number, kind = targets.match_each(targets.overlaps(boxes, labels, anchors), 0.5)
        found = kind > 0  # (B, A)
        count = found.sum().clamp(min=1)
        wanted = targets.encode(targets.rows(boxes, number), anchors[None], _CODES)
        wanted = flow.where(found[..., None], wanted, 0.0)  # padding has no logarithm
        by_box = F.smooth_l1_loss(codes, wanted, reduction="none").sum(-1)
        kinds = flow.where(found, targets.rows(labels, number), 0)
        by_class = F.cross_entropy(logits.reshape(-1, self.num_classes), kinds.reshape(-1), reduction="none")
        by_class = by_class.reshape(kinds.shape)
        order = flow.where(found, -flow.inf, by_class.detach()).argsort(1, descending=True)
        worst = order.argsort(1) < 3 * found.sum(1, keepdim=True)
        counted = flow.where(found | worst, by_class, 0.0).sum()
        return {
            "bbox_regression": flow.where(found, by_box, 0.0).sum() / count,
            "classification": counted / count,
        }

    def detect(self, images: Tensor) -> dict[str, Tensor]:
        """Return what is in images, with static shapes.

        Args:
            images: ``(B, 3, 300, 300)``.

        Returns:
            ``boxes`` ``(B, D, 4)`` in pixels, ``scores`` and ``labels`` ``(B, D)``, best first, and ``count`` ``(B,)``:
            how many of the rows are detections; others are 0, with the label -1.
        """
        logits, codes = self(images)
        boxes = targets.decode(codes, like(logits, self._anchors)[None], _CODES)
        boxes = clip_boxes_to_image(boxes, (self.size, self.size))  # (B, A, 4)
        scores = flow.softmax(logits, -1)[..., 1:].transpose(1, 2)  # (B, C - 1, A)
        best, at = scores.topk(self.candidates, -1)  # (B, C - 1, K)
        batch, classes, k = best.shape
        corners = targets.rows(boxes, at.reshape(batch, -1)).reshape(batch, classes, k, 4)
        best = flow.where(best > self.score_threshold, best, -flow.inf)
        kept, _ = nms(corners, best, self.overlap_threshold, size=min(k, self.detections))
        valid = kept >= 0
        kept = kept.clamp(min=0)
        scores = flow.where(valid, best.gather(-1, kept), -flow.inf).reshape(batch, -1)
        corners = corners.gather(2, kept[..., None].expand(*kept.shape, 4)).reshape(batch, -1, 4)
        labels = like(scores, [[float(c)] * kept.shape[-1] for c in range(1, classes + 1)]).long().reshape(1, -1)
        return targets.keep_best(corners, scores, labels.expand(batch, -1), self.detections)
