"""Helpers around training: checkpoints, nested structures of tensors, data; rooms load when they are asked for."""

from sbpjax.compat.utils_names import attribute as __getattr__  # noqa: F401
from sbpjax.data.save_load import load as load
from sbpjax.data.save_load import save as save

from . import global_view as global_view
