"""Training recipes for vision: learning rate schedules by time, losses, adaptive gradient clipping.

Moving averages of parameters are `sbpjax.train.Average` and `sbpjax.optim.swa_utils`.
"""

from .losses import BinaryCrossEntropy as BinaryCrossEntropy
from .losses import LabelSmoothingCrossEntropy as LabelSmoothingCrossEntropy
from .losses import SoftTargetCrossEntropy as SoftTargetCrossEntropy
from .losses import adaptive_clip_grad_ as adaptive_clip_grad_
from .schedules import Cosine as Cosine
from .schedules import Linear as Linear
from .schedules import MultiStep as MultiStep
from .schedules import Poly as Poly
from .schedules import Schedule as Schedule
from .schedules import ScheduleRunner as ScheduleRunner
from .schedules import Step as Step
from .schedules import Tanh as Tanh
