"""Automatic differentiation: the tape and what a user does with it."""

from . import functional as functional
from . import graph as graph
from .api import backward as backward
from .api import grad as grad
from .checkpoint import checkpoint as checkpoint
from .function import Function as Function
from .function import FunctionCtx as FunctionCtx
from .function import once_differentiable as once_differentiable
from .grad_mode import enable_grad as enable_grad
from .grad_mode import inference_mode as inference_mode
from .grad_mode import is_grad_enabled as is_grad_enabled
from .grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from .grad_mode import no_grad as no_grad
from .grad_mode import set_grad_enabled as set_grad_enabled
from .gradcheck import GradcheckError as GradcheckError
from .gradcheck import gradcheck as gradcheck
from .gradcheck import gradgradcheck as gradgradcheck
