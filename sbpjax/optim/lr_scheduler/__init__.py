"""Learning rate schedules."""

from .base import LRScheduler as LRScheduler
from .base import _LRScheduler as _LRScheduler
from .cosine import CosineAnnealingLR as CosineAnnealingLR
from .cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from .cosine import CosineDecayLR as CosineDecayLR
from .cyclic import CyclicLR as CyclicLR
from .lambdas import LambdaLR as LambdaLR
from .lambdas import MultiplicativeLR as MultiplicativeLR
from .lambdas import warmup_constant as warmup_constant
from .lambdas import warmup_cosine as warmup_cosine
from .one_cycle import OneCycleLR as OneCycleLR
from .plateau import ReduceLROnPlateau as ReduceLROnPlateau
from .ramp import ConstantLR as ConstantLR
from .ramp import LinearLR as LinearLR
from .ramp import PolynomialLR as PolynomialLR
from .sequence import ChainedScheduler as ChainedScheduler
from .sequence import SequentialLR as SequentialLR
from .steps import ExponentialLR as ExponentialLR
from .steps import MultiStepLR as MultiStepLR
from .steps import StepLR as StepLR
from .warmup import WarmUpLR as WarmUpLR
from .warmup import WarmupLR as WarmupLR
