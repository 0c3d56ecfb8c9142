"""Written by `make stubs` from the live package; do not edit."""
# Training utilities: checkpoints, nested structures of tensors, data; subpackages load lazily.

import builtins

from sbpjax.utils import checkpoint as checkpoint
from sbpjax.utils import data as data
from sbpjax.utils import global_view as global_view
from sbpjax.utils import hooks as hooks
from sbpjax.data.save_load import load as load
from sbpjax._core.compat.small import load_library as load_library
from sbpjax.utils import model_zoo as model_zoo
from sbpjax.data.save_load import save as save
from sbpjax.utils import tensor as tensor
