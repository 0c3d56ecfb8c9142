"""Helpers around training: checkpoints, nested structures of tensors."""

from . import global_view as global_view
from .checkpoint import load as load
from .checkpoint import save as save
