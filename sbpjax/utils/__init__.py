"""Helpers around training: checkpoints."""

from .checkpoint import load as load
from .checkpoint import save as save
