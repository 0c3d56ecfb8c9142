"""Helpers around training: checkpoints, nested structures of tensors, data; rooms load when they are asked for."""

from sbpjax._core.functions.table.table import face as _face
from sbpjax.data.save_load import load as load
from sbpjax.data.save_load import save as save

from . import global_view as global_view

__getattr__, __dir__ = _face("utils", globals(), modules="checkpoint data hooks model_zoo tensor")
