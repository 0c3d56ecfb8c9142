"""Modules, layers, losses, initialisers: PyTorch's `torch.nn` over logical tensors."""

from . import functional as functional
from . import init as init
from . import parallel as parallel
from . import utils as utils
from .activation import CELU as CELU
from .activation import ELU as ELU
from .activation import GELU as GELU
from .activation import GLU as GLU
from .activation import SELU as SELU
from .activation import Hardshrink as Hardshrink
from .activation import Hardsigmoid as Hardsigmoid
from .activation import Hardswish as Hardswish
from .activation import Hardtanh as Hardtanh
from .activation import LeakyReLU as LeakyReLU
from .activation import LogSigmoid as LogSigmoid
from .activation import LogSoftmax as LogSoftmax
from .activation import Mish as Mish
from .activation import PReLU as PReLU
from .activation import QuickGELU as QuickGELU
from .activation import ReLU as ReLU
from .activation import ReLU6 as ReLU6
from .activation import Sigmoid as Sigmoid
from .activation import SiLU as SiLU
from .activation import Softmax as Softmax
from .activation import Softplus as Softplus
from .activation import Softshrink as Softshrink
from .activation import Softsign as Softsign
from .activation import Tanh as Tanh
from .activation import Tanhshrink as Tanhshrink
from .activation import Threshold as Threshold
from .attention import MultiheadAttention as MultiheadAttention
from .batchnorm import BatchNorm1d as BatchNorm1d
from .batchnorm import BatchNorm2d as BatchNorm2d
from .batchnorm import BatchNorm3d as BatchNorm3d
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import ParameterDict as ParameterDict
from .containers import ParameterList as ParameterList
from .containers import Sequential as Sequential
from .conv import Conv1d as Conv1d
from .conv import Conv2d as Conv2d
from .conv import Conv3d as Conv3d
from .dropout import Dropout as Dropout
from .dropout import Dropout1d as Dropout1d
from .dropout import Dropout2d as Dropout2d
from .embedding import Embedding as Embedding
from .hooks import register_module_forward_hook as register_module_forward_hook
from .hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from .linear import Bilinear as Bilinear
from .linear import Flatten as Flatten
from .linear import Identity as Identity
from .linear import Linear as Linear
from .linear import Unflatten as Unflatten
from .loss import BCELoss as BCELoss
from .loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from .loss import CrossEntropyLoss as CrossEntropyLoss
from .loss import HuberLoss as HuberLoss
from .loss import KLDivLoss as KLDivLoss
from .loss import L1Loss as L1Loss
from .loss import MSELoss as MSELoss
from .loss import NLLLoss as NLLLoss
from .loss import SmoothL1Loss as SmoothL1Loss
from .module import Module as Module
from .normalization import GroupNorm as GroupNorm
from .normalization import LayerNorm as LayerNorm
from .normalization import RMSNorm as RMSNorm
from .parameter import Parameter as Parameter
from .pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from .pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from .pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from .pooling import AvgPool1d as AvgPool1d
from .pooling import AvgPool2d as AvgPool2d
from .pooling import MaxPool1d as MaxPool1d
from .pooling import MaxPool2d as MaxPool2d


def __getattr__(name: str):
    # Graphs build on this package, so their names come when they are asked for.
    if name == "Graph":
        from sbpjax.graph import Graph

        return Graph
    if name == "graph":
        import importlib

        return importlib.import_module("sbpjax.nn.graph")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
