"""Inference engines under a graph: OpenVINO, ONNX Runtime, IREE, and XLA with weights as constants."""

from .options import ENGINES as ENGINES
from .options import PRECISIONS as PRECISIONS
from .options import Engine as Engine
from .program import EngineProgram as EngineProgram
from .program import onnx_model as onnx_model
