"""`AdaptiveLogSoftmaxWithLoss`: softmax over very many classes, with the rare ones in clusters.

Worked case, cutoffs 10 and 100 of 1000 classes: the head has 12 outputs, the ten frequent classes and two clusters;
class 37 has the log probability of its cluster plus its own among the 90 classes there.

Source: Grave et al., Efficient softmax approximation for GPUs (2017).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from sbpjax._core import functions
from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn.containers import ModuleList, Sequential
from sbpjax.nn.layers.linear import Linear
from sbpjax.nn.module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of many classes, sorted by frequency, with the loss of the targets.

    Args:
        in_features: features of the input.
        n_classes: the number of classes, the most frequent first.
        cutoffs: increasing; where the head and each cluster end.
        div_value: each cluster's features are fewer by this factor than those of the one before.
        head_bias: whether the head has a bias.
        device: where the parameters are made.
        dtype: their dtype.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        ends = list(cutoffs)
        if not ends or ends != sorted(set(ends)) or min(ends) <= 0 or max(ends) > n_classes - 1:
            rule = (
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
            fail("value", "AdaptiveLogSoftmaxWithLoss(...)", f"cutoffs={ends}", rule, "cutoffs=[10, 100]")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*ends, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden, size = int(in_features // div_value ** (i + 1)), self.cutoffs[i + 1] - self.cutoffs[i]
            first = Linear(in_features, hidden, bias=False, **options)
            self.tail.append(Sequential(first, Linear(hidden, size, bias=False, **options)))

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Return the log probability of each target, and minus their mean.

        Args:
            input_: `(N, in_features)` or `(in_features,)`.
            target_: class numbers `(N,)` or `()`.
        """
        operation = "AdaptiveLogSoftmaxWithLoss(...)(input, target)"
        if input_.ndim not in (1, 2) or target_.ndim != input_.ndim - 1 or input_.shape[:-1] != target_.shape:
            seen = f"input {tuple(input_.shape)}, target {tuple(target_.shape)}"
            fail(
                "shape",
                operation,
                seen,
                "Input and target should have the same size in the batch dimension",
                "(N, F), (N,)",
            )
        single = target_.ndim == 0
        x, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        found = self.log_prob(x).gather(1, target.unsqueeze(1)).squeeze(1)
        loss = (-found).mean()
        return _ASMoutput(found.squeeze(0) if single else found, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log probabilities `(N, n_classes)`."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head.narrow(1, 0, self.shortlist_size)]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), dim=1) + head.narrow(1, self.shortlist_size + i, 1))
        return functions.cat(parts, dim=1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class per row."""
        return self.log_prob(input).argmax(1)
