"""Margin softmax (ArcFace, CosFace): classifier and loss for very many classes, such as faces.

    head = MarginSoftmax(1_000_000, 512, m2=0.5)                     # ArcFace; m3=0.4 alone is CosFace
    head.to_global(placement, sbp.split(0))                          # an eighth of the classes on each of 8 devices
    loss = head(backbone(images), labels)                            # images: split over the same devices

With features and classes scaled to length 1, logits are cosines. That of the label is made smaller before the softmax,
``cos(m1 · θ + m2) - m3``, and all are multiplied by a scale. Split by classes, every rank has the cosines of its
classes; ranks exchange the features, and for each example the label's cosine, the largest logit and two sums. Nothing
that is exchanged grows with the number of classes.

`PartialMarginSoftmax` computes the classes of the batch and a random part of the others. Classes lie in blocks, and
each block draws its own, so that a rank which has whole blocks draws among its classes alone; and the draw is the same
for any number of ranks. Its gradient is one of rows: an optimizer with sparse updates touches the drawn classes alone.

Source: Wang et al., CosFace, arXiv:1801.09414; Deng et al., ArcFace, arXiv:1801.07698; An et al., Partial FC,
arXiv:2010.05222.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import OpValueError
from sbpjax.nn import functional as F

# The slope of an arc cosine is infinite at 1.
_LARGEST = 1 - 1e-6
_LEFT_OUT = -100


class _Margin(nn.Module):
    """Base of the classifiers: the margin, the scale, and the loss of cosines."""

    def __init__(self, m1: float, m2: float, m3: float, scale: float):
        super().__init__()
        if m1 < 1 or m2 < 0 or m3 < 0 or scale <= 0:
            seen = f"m1={m1}, m2={m2}, m3={m3}, scale={scale}"
            rule = "a margin makes the label's cosine smaller: m1 >= 1, m2 >= 0, m3 >= 0; and the scale is above 0"
            raise OpValueError(f"{type(self).__name__}(...)", seen, rule, "m2=0.5 (ArcFace), or m3=0.4 (CosFace)")
        self.m1, self.m2, self.m3, self.scale = m1, m2, m3, scale

    def _loss(self, cosines: flow.Tensor, labels: flow.Tensor) -> flow.Tensor:
        """Return the mean loss of cosines `(B, C)`; labels that are left out do not count."""
        cosines = cosines.float().clamp(-_LARGEST, _LARGEST)
        logits = F.combined_margin_loss(cosines, labels, self.m1, self.m2, self.m3) * self.scale
        return F.cross_entropy(logits, labels, ignore_index=_LEFT_OUT)

    def extra_repr(self) -> str:
        """Return the margins."""
        return f"m1={self.m1}, m2={self.m2}, m3={self.m3}, scale={self.scale}"


class MarginSoftmax(_Margin):
    """Cross entropy over cosines with a margin at the label, of all classes.

    `weight` is `(classes, dim)`; ``split(0)`` divides the classes over the ranks.

    Args:
        classes: how many.
        dim: the size of the features.
        m1: factor of the label's angle.
        m2: added to the label's angle.
        m3: taken from the label's cosine.
        scale: factor of all cosines.

    Raises:
        ValueError: a margin that would make the label's cosine larger.

    Example:
        >>> head = flow.models.layers.MarginSoftmax(10, 4, m2=0.5)
        >>> head(flow.randn(3, 4), flow.tensor([1, 0, 9])).shape
        sbpjax.Size([])
    """

    def __init__(self, classes: int, dim: int, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0, scale: float = 64.0):
        super().__init__(m1, m2, m3, scale)
        self.weight = nn.Parameter(flow.empty(classes, dim))
        nn.init.normal_(self.weight, std=0.01)

    def cosines(self, features: flow.Tensor) -> flow.Tensor:
        """Return the cosines `(B, C)` of features `(B, D)` with all classes."""
        return F.linear(F.normalize(features), F.normalize(self.weight))

    def forward(self, features: flow.Tensor, labels: flow.Tensor) -> flow.Tensor:
        """Return the mean loss.

        Args:
            features: `(B, D)`, any sbp.
            labels: `(B,)` class numbers.

        Returns:
            A number, float32.
        """
        return self._loss(self.cosines(features), labels)


class PartialMarginSoftmax(_Margin):
    """Cross entropy over cosines with a margin at the label, of the batch's classes and a random part of the others.

    `weight` is `(blocks, classes / blocks, dim)`: class c is row ``c % (classes / blocks)`` of block
    ``c // (classes / blocks)``. ``split(0)`` divides the blocks over the ranks. Each step draws anew.

    Args:
        classes: how many, a multiple of `blocks`.
        dim: the size of the features.
        sample: how many classes a step takes, a multiple of `blocks`; each block takes its classes that occur in the
            batch first. An example whose class finds no place does not count, which cannot happen if a block's share
            is at least the batch.
        blocks: of how many parts each draws its own; a multiple of the ranks, and the same for runs that are to give
            the same numbers.
        m1: factor of the label's angle.
        m2: added to the label's angle.
        m3: taken from the label's cosine.
        scale: factor of all cosines.

    Raises:
        ValueError: blocks do not divide classes and sample, or the sample is larger than the classes.

    Example:
        >>> head = flow.models.layers.PartialMarginSoftmax(1000, 4, sample=64, blocks=8, m3=0.4)
        >>> head(flow.randn(3, 4), flow.tensor([1, 0, 999])).shape
        sbpjax.Size([])
    """

    def __init__(
        self,
        classes: int,
        dim: int,
        sample: int,
        blocks: int = 8,
        m1: float = 1.0,
        m2: float = 0.0,
        m3: float = 0.0,
        scale: float = 64.0,
    ):
        super().__init__(m1, m2, m3, scale)
        if classes % blocks or sample % blocks or not 0 < sample <= classes:
            seen = f"classes={classes}, sample={sample}, blocks={blocks}"
            rule = "blocks divide the classes and the sample, and a sample has at most all classes"
            near = max(blocks, min(sample, classes) // blocks * blocks)
            fix = f"classes={-(-classes // blocks) * blocks}, sample={near}"
            raise OpValueError("PartialMarginSoftmax(...)", seen, rule, fix)
        self.blocks, self.sample = blocks, sample
        self.weight = nn.Parameter(flow.empty(blocks, classes // blocks, dim))
        nn.init.normal_(self.weight, std=0.01)

    def draw_rows(self, labels: flow.Tensor) -> flow.Tensor:
        """Return the rows that a step takes of each block, `(blocks, sample / blocks)`, those of the labels first.

        Args:
            labels: `(B,)` class numbers.
        """
        blocks, size = self.weight.shape[:2]
        with flow.no_grad():
            score = flow.rand(blocks, size, **self._place())
            # Above all that is drawn. Labels that are left out fall into no block.
            block = flow.where(labels >= 0, labels // size, flow.full_like(labels, blocks))
            ours = block.unsqueeze(0) == self._numbers(blocks).unsqueeze(1)  # (blocks, B)
            row = flow.where(ours, (labels % size).unsqueeze(0), flow.zeros_like(labels))
            score = score.scatter_add(1, row, ours.to(score.dtype) * 2)
            return score.topk(self.sample // blocks, dim=1)[1]

    def forward(self, features: flow.Tensor, labels: flow.Tensor) -> flow.Tensor:
        """Return the mean loss over the classes that are drawn.

        Args:
            features: `(B, D)`, any sbp.
            labels: `(B,)` class numbers.

        Returns:
            A number, float32.
        """
        blocks, size, dim = self.weight.shape
        rows = self.draw_rows(labels)  # (G, S)
        weight = F.embedding(rows.transpose(0, 1), self.weight, sparse=True)  # (S, G, D)
        weight = F.normalize(weight.transpose(0, 1).reshape(self.sample, dim))
        number = (rows + (self._numbers(blocks) * size).unsqueeze(1)).reshape(-1)  # (G S)
        own = labels.unsqueeze(1) == number.unsqueeze(0)  # (B, G S)
        place = self._numbers(self.sample)
        found = flow.where(own, place, flow.zeros_like(place)).sum(1)
        target = flow.where(own.any(1), found, flow.full_like(found, _LEFT_OUT))
        return self._loss(F.linear(F.normalize(features), weight), target)

    def _place(self) -> dict:
        """Return where tensors like the weight lie: its blocks are divided as the weight's are."""
        weight = self.weight
        if not weight.is_global:
            return {"device": weight.device}
        return {"placement": weight.placement, "sbp": [flow.sbp.broadcast] * len(weight.placement.hierarchy)}

    def _numbers(self, count: int) -> flow.Tensor:
        return flow.arange(count, **self._place())
