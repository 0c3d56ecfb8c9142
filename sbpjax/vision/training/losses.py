"""Classification losses for smoothed and mixed labels, and adaptive gradient clipping."""

from __future__ import annotations

import sbpjax as flow
from sbpjax import Tensor, nn
from sbpjax.errors import ConfigError, OpError
from sbpjax.nn import functional as F


def _share(name: str, smoothing: float) -> float:
    if not 0 <= smoothing < 1:
        seen = f"smoothing={smoothing}"
        raise ConfigError(f"{name}(smoothing={smoothing})", seen, "smoothing is from 0 to below 1", "smoothing=0.1")
    return smoothing


class LabelSmoothingCrossEntropy(nn.Module):
    """Mean cross entropy with a share of each label spread over all classes.

    Args:
        smoothing: the share.

    Raises:
        ConfigError: it is no share.

    Example:
        >>> LabelSmoothingCrossEntropy(0.1)(flow.zeros(2, 4), flow.tensor([0, 3]))
        tensor(1.3863)
    """

    def __init__(self, smoothing: float = 0.1) -> None:
        super().__init__()
        self.smoothing = _share("LabelSmoothingCrossEntropy", smoothing)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of logits ``(B, C)`` and labels ``(B,)``."""
        return F.cross_entropy(logits, labels, label_smoothing=self.smoothing)


class SoftTargetCrossEntropy(nn.Module):
    """Mean cross entropy with class shares as targets, as returned by `MixUp` and `CutMix`.

    Example:
        >>> SoftTargetCrossEntropy()(flow.zeros(1, 2), flow.tensor([[0.5, 0.5]]))
        tensor(0.6931)
    """

    def forward(self, logits: Tensor, shares: Tensor) -> Tensor:
        """Return the loss of logits ``(B, C)`` and shares ``(B, C)``.

        Raises:
            OpError: the shapes differ.
        """
        if logits.shape != shares.shape:
            seen = f"logits {tuple(logits.shape)}, shares {tuple(shares.shape)}"
            fix = "F.one_hot(labels, classes).float(), or LabelSmoothingCrossEntropy for labels (B,)"
            raise OpError("SoftTargetCrossEntropy()(logits, shares)", seen, "each logit has a share", fix)
        return -(shares * F.log_softmax(logits, dim=-1)).sum(-1).mean()


class BinaryCrossEntropy(nn.Module):
    """Mean binary cross entropy of each class, for labels or class shares.

    Args:
        smoothing: the share of a label that is spread over all classes.
        target_threshold: shares above it count as 1, others as 0; None leaves them.
        sum_classes: sum over classes, mean over images; else the mean of all.

    Raises:
        ConfigError: `smoothing` is no share.

    Source: Wightman et al., "ResNet strikes back", 2021.

    Example:
        >>> BinaryCrossEntropy(smoothing=0.0)(flow.zeros(1, 2), flow.tensor([1]))
        tensor(0.6931)
    """

    def __init__(
        self, smoothing: float = 0.1, target_threshold: float | None = None, sum_classes: bool = False
    ) -> None:
        super().__init__()
        self.smoothing = _share("BinaryCrossEntropy", smoothing)
        self.target_threshold, self.sum_classes = target_threshold, sum_classes

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of logits ``(B, C)`` and labels ``(B,)`` or shares ``(B, C)``."""
        if targets.shape != logits.shape:
            classes = logits.shape[-1]
            off = self.smoothing / classes
            hot = F.one_hot(targets.long(), classes).to(logits.dtype)
            targets = hot * (1 - self.smoothing) + off
        if self.target_threshold is not None:
            targets = (targets > self.target_threshold).to(logits.dtype)
        loss = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        return loss.sum(-1).mean() if self.sum_classes else loss.mean()


def adaptive_clip_grad_(parameters: Tensor | list[Tensor], clip_factor: float = 0.01, eps: float = 1e-3) -> None:
    """Scale gradients down, row by row, to a share of the norm of the parameter's row.

    Args:
        parameters: with gradients; a row is one output: all but the first dim of two and more, all of one dim.
        clip_factor: the largest quotient of the norms of gradient and parameter.
        eps: the least norm of a parameter's row that is reckoned with, so that zeros can grow.

    Raises:
        ConfigError: a number is not above 0.

    Source: Brock et al., "High-Performance Large-Scale Image Recognition Without Normalization", 2021.

    Example:
        >>> w = flow.nn.Parameter(flow.ones(1, 4))
        >>> w.grad = flow.full((1, 4), 3.0)
        >>> adaptive_clip_grad_([w], 0.5)
        >>> w.grad
        tensor([[0.5000, 0.5000, 0.5000, 0.5000]])
    """
    if clip_factor <= 0 or eps <= 0:
        seen = f"clip_factor={clip_factor}, eps={eps}"
        raise ConfigError("adaptive_clip_grad_(parameters)", seen, "both are above 0", "clip_factor=0.01")
    for parameter in [parameters] if isinstance(parameters, Tensor) else parameters:
        if parameter.grad is None:
            continue
        with flow.no_grad():
            gradient = parameter.grad
            most = _norm(parameter.detach()).clamp(min=eps) * clip_factor
            norm = _norm(gradient)
            scaled = gradient * (most / norm.clamp(min=1e-6))
            parameter.grad = flow.where(norm < most, gradient, scaled)


def _norm(x: Tensor) -> Tensor:
    """Return the norm of each row, in a shape that goes with the whole."""
    dims = tuple(range(1, x.ndim)) if x.ndim > 1 else tuple(range(x.ndim))
    return x.square().sum(dims, keepdim=True).sqrt()
