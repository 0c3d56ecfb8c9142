"""Conversion of StableHLO programs to ONNX models."""

from .convert import convert as convert
from .values import UnsupportedError as UnsupportedError
