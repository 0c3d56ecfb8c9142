"""Optimizers with one compiled update for all parameters, learning rate schedules, loss scaling."""

from sbpjax._core.runtime.gc_pause import Pause as _Pause  # isort: skip  # first of all

_resting = _Pause()

from sbpjax._core.tensor.tape.row_grad import mark_row_table as mark_row_table

from . import lr_scheduler as lr_scheduler
from . import swa_utils as swa_utils
from .algorithms.adadelta import Adadelta as Adadelta
from .algorithms.adafactor import Adafactor as Adafactor
from .algorithms.adagrad import Adagrad as Adagrad
from .algorithms.adam import Adam as Adam
from .algorithms.adam import AdamW as AdamW
from .algorithms.adamax import Adamax as Adamax
from .algorithms.adamax import NAdam as NAdam
from .algorithms.adamax import RAdam as RAdam
from .algorithms.asgd import ASGD as ASGD
from .algorithms.ftrl import Ftrl as Ftrl
from .algorithms.lamb import LAMB as LAMB
from .algorithms.lbfgs import LBFGS as LBFGS
from .algorithms.muon import Muon as Muon
from .algorithms.rmsprop import RMSprop as RMSprop
from .algorithms.rprop import Rprop as Rprop
from .algorithms.sgd import SGD as SGD
from .algorithms.sparse_adam import SparseAdam as SparseAdam
from .from_optax import Optax as Optax
from .from_optax import from_optax as from_optax
from .optimizer import Optimizer as Optimizer

del _Pause, _resting
