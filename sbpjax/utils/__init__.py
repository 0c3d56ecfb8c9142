"""Helpers around training: checkpoints, nested structures of tensors, data; rooms load when they are asked for."""

from . import global_view as global_view
from ._lazy import attribute as __getattr__  # noqa: F401
from .checkpoint import load as load
from .checkpoint import save as save
