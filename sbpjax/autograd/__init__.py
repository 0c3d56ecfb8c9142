"""Automatic differentiation: gradients, custom functions, grad modes, functional derivatives."""

from sbpjax._core.functions.gradcheck import GradcheckError as GradcheckError
from sbpjax._core.functions.gradcheck import gradcheck as gradcheck
from sbpjax._core.functions.gradcheck import gradgradcheck as gradgradcheck
from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks
from sbpjax._core.tensor.tape.anomaly import detect_anomaly as detect_anomaly
from sbpjax._core.tensor.tape.anomaly import is_anomaly_enabled as is_anomaly_enabled
from sbpjax._core.tensor.tape.anomaly import set_detect_anomaly as set_detect_anomaly
from sbpjax._core.tensor.tape.backward import backward as backward
from sbpjax._core.tensor.tape.backward import grad as grad
from sbpjax._core.tensor.tape.function import Function as Function
from sbpjax._core.tensor.tape.function import FunctionCtx as FunctionCtx
from sbpjax._core.tensor.tape.function import once_differentiable as once_differentiable
from sbpjax._core.tensor.tape.grad_mode import enable_grad as enable_grad
from sbpjax._core.tensor.tape.grad_mode import inference_mode as inference_mode
from sbpjax._core.tensor.tape.grad_mode import is_grad_enabled as is_grad_enabled
from sbpjax._core.tensor.tape.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from sbpjax._core.tensor.tape.grad_mode import no_grad as no_grad
from sbpjax._core.tensor.tape.grad_mode import set_grad_enabled as set_grad_enabled
from sbpjax._core.tracing.checkpoint import checkpoint as checkpoint

from . import functional as functional
from . import graph as graph

__getattr__, __dir__ = _reexport_hooks("autograd", globals(), modules="function")
