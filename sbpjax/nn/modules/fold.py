"""PyTorch's place for these names: patches and columns."""

from sbpjax.nn.vision import Fold as Fold
from sbpjax.nn.vision import Unfold as Unfold
