"""`Function`: an op with a user-defined backward."""

from sbpjax._core.tensor.tape.function import Function as Function
from sbpjax._core.tensor.tape.function import FunctionCtx as FunctionCtx
from sbpjax._core.tensor.tape.function import FunctionNode as FunctionNode
from sbpjax._core.tensor.tape.function import once_differentiable as once_differentiable
