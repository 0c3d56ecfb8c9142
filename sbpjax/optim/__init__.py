"""Optimizers with one compiled update for the whole list of parameters, and schedules of the learning rate."""

from . import lr_scheduler as lr_scheduler
from .adam import Adam as Adam
from .adam import AdamW as AdamW
from .optimizer import Optimizer as Optimizer
from .sgd import SGD as SGD
