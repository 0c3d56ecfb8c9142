"""PyTorch's place for these names: modules that hold others."""

from sbpjax.nn.containers import ModuleDict as ModuleDict
from sbpjax.nn.containers import ModuleList as ModuleList
from sbpjax.nn.containers import Sequential as Sequential
from sbpjax.nn.parameter_containers import ParameterDict as ParameterDict
from sbpjax.nn.parameter_containers import ParameterList as ParameterList

from .module import _addindent as _addindent
