"""Optimizers with one compiled update for the whole list of parameters, and schedules of the learning rate."""

from . import lr_scheduler as lr_scheduler
from .adadelta import Adadelta as Adadelta
from .adagrad import Adagrad as Adagrad
from .adam import Adam as Adam
from .adam import AdamW as AdamW
from .from_optax import Optax as Optax
from .from_optax import from_optax as from_optax
from .lamb import LAMB as LAMB
from .lbfgs import LBFGS as LBFGS
from .optimizer import Optimizer as Optimizer
from .rmsprop import RMSprop as RMSprop
from .sgd import SGD as SGD
