"""Utilities: save and load, data loading, nested structures of tensors, host processes; subpackages load lazily."""

from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks
from sbpjax.data.save_load import load as load
from sbpjax.data.save_load import save as save

from . import global_view as global_view

__getattr__, __dir__ = _reexport_hooks(
    "utils", globals(), modules="checkpoint data hooks host interrupts model_zoo tensor"
)
