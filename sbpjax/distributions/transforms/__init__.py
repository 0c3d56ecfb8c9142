"""Invertible transforms with log-determinants, for `TransformedDistribution` and `biject_to`."""

from .base import Transform as Transform
from .base import _InverseTransform as _InverseTransform
from .matrices import CorrCholeskyTransform as CorrCholeskyTransform
from .matrices import LowerCholeskyTransform as LowerCholeskyTransform
from .matrices import PositiveDefiniteTransform as PositiveDefiniteTransform
from .of_others import CatTransform as CatTransform
from .of_others import ComposeTransform as ComposeTransform
from .of_others import IndependentTransform as IndependentTransform
from .of_others import StackTransform as StackTransform
from .of_others import identity_transform as identity_transform
from .pointwise import AbsTransform as AbsTransform
from .pointwise import AffineTransform as AffineTransform
from .pointwise import CumulativeDistributionTransform as CumulativeDistributionTransform
from .pointwise import ExpTransform as ExpTransform
from .pointwise import PowerTransform as PowerTransform
from .pointwise import SigmoidTransform as SigmoidTransform
from .pointwise import SoftplusTransform as SoftplusTransform
from .pointwise import TanhTransform as TanhTransform
from .vectors import ReshapeTransform as ReshapeTransform
from .vectors import SoftmaxTransform as SoftmaxTransform
from .vectors import StickBreakingTransform as StickBreakingTransform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
