"""PyTorch's place for these names: losses."""

from sbpjax.nn.loss import BCELoss as BCELoss
from sbpjax.nn.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from sbpjax.nn.loss import CrossEntropyLoss as CrossEntropyLoss
from sbpjax.nn.loss import HuberLoss as HuberLoss
from sbpjax.nn.loss import KLDivLoss as KLDivLoss
from sbpjax.nn.loss import L1Loss as L1Loss
from sbpjax.nn.loss import MSELoss as MSELoss
from sbpjax.nn.loss import NLLLoss as NLLLoss
from sbpjax.nn.loss import SmoothL1Loss as SmoothL1Loss
from sbpjax.nn.loss import _Loss as _Loss
from sbpjax.nn.loss import _Weighted as _Weighted
from sbpjax.nn.losses import CombinedMarginLoss as CombinedMarginLoss
from sbpjax.nn.losses import CosineEmbeddingLoss as CosineEmbeddingLoss
from sbpjax.nn.losses import CTCLoss as CTCLoss
from sbpjax.nn.losses import GaussianNLLLoss as GaussianNLLLoss
from sbpjax.nn.losses import HingeEmbeddingLoss as HingeEmbeddingLoss
from sbpjax.nn.losses import MarginRankingLoss as MarginRankingLoss
from sbpjax.nn.losses import MultiLabelMarginLoss as MultiLabelMarginLoss
from sbpjax.nn.losses import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from sbpjax.nn.losses import MultiMarginLoss as MultiMarginLoss
from sbpjax.nn.losses import NLLLoss2d as NLLLoss2d
from sbpjax.nn.losses import PoissonNLLLoss as PoissonNLLLoss
from sbpjax.nn.losses import SoftMarginLoss as SoftMarginLoss
from sbpjax.nn.losses import TripletMarginLoss as TripletMarginLoss
from sbpjax.nn.losses import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss

_WeightedLoss = _Weighted
