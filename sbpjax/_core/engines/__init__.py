"""Inference engines under a graph: OpenVINO, ONNX Runtime, IREE, and XLA with weights as constants."""

from .program import EngineProgram as EngineProgram
from .program import onnx_model as onnx_model
from .runtimes import ENGINES as ENGINES
from .runtimes import PRECISIONS as PRECISIONS
from .runtimes import Engine as Engine
