"""Optimizers with one compiled update for the whole list of parameters, and schedules of the learning rate."""

from sbpjax._core.runtime.gc_pause import Pause as _Pause  # isort: skip  # first of all

_resting = _Pause()

from sbpjax._core.tensor.tape.row_grad import mark_row_table as mark_row_table

from . import lr_scheduler as lr_scheduler
from . import swa_utils as swa_utils
from .adadelta import Adadelta as Adadelta
from .adafactor import Adafactor as Adafactor
from .adagrad import Adagrad as Adagrad
from .adam import Adam as Adam
from .adam import AdamW as AdamW
from .adamax import Adamax as Adamax
from .adamax import NAdam as NAdam
from .adamax import RAdam as RAdam
from .asgd import ASGD as ASGD
from .from_optax import Optax as Optax
from .from_optax import from_optax as from_optax
from .ftrl import Ftrl as Ftrl
from .lamb import LAMB as LAMB
from .lbfgs import LBFGS as LBFGS
from .muon import Muon as Muon
from .optimizer import Optimizer as Optimizer
from .rmsprop import RMSprop as RMSprop
from .sgd import SGD as SGD
from .sign import Lion as Lion
from .sign import Rprop as Rprop
from .sparse_adam import SparseAdam as SparseAdam

del _resting
