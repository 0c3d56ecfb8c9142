"""Invertible transforms with log-determinants, for `TransformedDistribution` and `biject_to`."""

from .base import Transform as Transform
from .base import _InverseTransform as _InverseTransform
from .composed import ComposeTransform as ComposeTransform
from .composed import IndependentTransform as IndependentTransform
from .composed import identity_transform as identity_transform
from .formulas import AffineTransform as AffineTransform
from .formulas import ExpTransform as ExpTransform
from .formulas import LowerCholeskyTransform as LowerCholeskyTransform
from .formulas import SigmoidTransform as SigmoidTransform
from .formulas import SoftmaxTransform as SoftmaxTransform
from .formulas import SoftplusTransform as SoftplusTransform
from .formulas import StickBreakingTransform as StickBreakingTransform
from .formulas import TanhTransform as TanhTransform

__all__ = [
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
