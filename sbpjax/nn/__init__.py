"""Neural networks: modules, layers, losses and initialisers of `torch.nn` over global tensors."""

from sbpjax._core.runtime.gc_pause import Pause as _Pause  # isort: skip  # first of all

_resting = _Pause()

from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks
from sbpjax._core.runtime.optional_packages import LazyModule as _LazyModule
from sbpjax._core.tensor.calls.argument_errors import add_constructor_errors as _add_argument_errors

from . import functional as functional
from . import init as init
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import Sequential as Sequential
from .hooks import register_module_backward_hook as register_module_backward_hook
from .hooks import register_module_buffer_registration_hook as register_module_buffer_registration_hook
from .hooks import register_module_forward_hook as register_module_forward_hook
from .hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from .hooks import register_module_full_backward_hook as register_module_full_backward_hook
from .hooks import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from .hooks import register_module_module_registration_hook as register_module_module_registration_hook
from .hooks import register_module_parameter_registration_hook as register_module_parameter_registration_hook
from .layers.activation import CELU as CELU
from .layers.activation import ELU as ELU
from .layers.activation import GELU as GELU
from .layers.activation import GLU as GLU
from .layers.activation import SELU as SELU
from .layers.activation import Hardshrink as Hardshrink
from .layers.activation import Hardsigmoid as Hardsigmoid
from .layers.activation import Hardswish as Hardswish
from .layers.activation import Hardtanh as Hardtanh
from .layers.activation import LeakyReLU as LeakyReLU
from .layers.activation import LogSigmoid as LogSigmoid
from .layers.activation import LogSoftmax as LogSoftmax
from .layers.activation import Mish as Mish
from .layers.activation import PReLU as PReLU
from .layers.activation import QuickGELU as QuickGELU
from .layers.activation import ReLU as ReLU
from .layers.activation import ReLU6 as ReLU6
from .layers.activation import RReLU as RReLU
from .layers.activation import Sigmoid as Sigmoid
from .layers.activation import SiLU as SiLU
from .layers.activation import Softmax as Softmax
from .layers.activation import Softmax2d as Softmax2d
from .layers.activation import Softmin as Softmin
from .layers.activation import Softplus as Softplus
from .layers.activation import Softshrink as Softshrink
from .layers.activation import Softsign as Softsign
from .layers.activation import SquareReLU as SquareReLU
from .layers.activation import Tanh as Tanh
from .layers.activation import Tanhshrink as Tanhshrink
from .layers.activation import Threshold as Threshold
from .layers.attention import MultiheadAttention as MultiheadAttention
from .layers.batchnorm import BatchNorm1d as BatchNorm1d
from .layers.batchnorm import BatchNorm2d as BatchNorm2d
from .layers.batchnorm import BatchNorm3d as BatchNorm3d
from .layers.batchnorm import FusedBatchNorm1d as FusedBatchNorm1d
from .layers.batchnorm import FusedBatchNorm2d as FusedBatchNorm2d
from .layers.batchnorm import FusedBatchNorm3d as FusedBatchNorm3d
from .layers.batchnorm import SyncBatchNorm as SyncBatchNorm
from .layers.conv import Conv1d as Conv1d
from .layers.conv import Conv2d as Conv2d
from .layers.conv import Conv3d as Conv3d
from .layers.conv_transpose import ConvTranspose1d as ConvTranspose1d
from .layers.conv_transpose import ConvTranspose2d as ConvTranspose2d
from .layers.conv_transpose import ConvTranspose3d as ConvTranspose3d
from .layers.distance import CosineSimilarity as CosineSimilarity
from .layers.distance import PairwiseDistance as PairwiseDistance
from .layers.dropout import AlphaDropout as AlphaDropout
from .layers.dropout import Dropout as Dropout
from .layers.dropout import Dropout1d as Dropout1d
from .layers.dropout import Dropout2d as Dropout2d
from .layers.dropout import Dropout3d as Dropout3d
from .layers.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from .layers.embedding import Embedding as Embedding
from .layers.embedding import EmbeddingBag as EmbeddingBag
from .layers.instancenorm import InstanceNorm1d as InstanceNorm1d
from .layers.instancenorm import InstanceNorm2d as InstanceNorm2d
from .layers.instancenorm import InstanceNorm3d as InstanceNorm3d
from .layers.linear import Bilinear as Bilinear
from .layers.linear import Flatten as Flatten
from .layers.linear import Identity as Identity
from .layers.linear import Linear as Linear
from .layers.linear import Unflatten as Unflatten
from .layers.loss import BCELoss as BCELoss
from .layers.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from .layers.loss import CrossEntropyLoss as CrossEntropyLoss
from .layers.loss import CTCLoss as CTCLoss
from .layers.loss import GaussianNLLLoss as GaussianNLLLoss
from .layers.loss import HuberLoss as HuberLoss
from .layers.loss import KLDivLoss as KLDivLoss
from .layers.loss import L1Loss as L1Loss
from .layers.loss import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from .layers.loss import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from .layers.loss import MSELoss as MSELoss
from .layers.loss import NLLLoss as NLLLoss
from .layers.loss import NLLLoss2d as NLLLoss2d
from .layers.loss import PoissonNLLLoss as PoissonNLLLoss
from .layers.loss import SmoothL1Loss as SmoothL1Loss
from .layers.margin_loss import CombinedMarginLoss as CombinedMarginLoss
from .layers.margin_loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from .layers.margin_loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from .layers.margin_loss import MarginRankingLoss as MarginRankingLoss
from .layers.margin_loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from .layers.margin_loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from .layers.margin_loss import MultiMarginLoss as MultiMarginLoss
from .layers.margin_loss import SoftMarginLoss as SoftMarginLoss
from .layers.margin_loss import TripletMarginLoss as TripletMarginLoss
from .layers.margin_loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from .layers.normalization import CrossMapLRN2d as CrossMapLRN2d
from .layers.normalization import GroupNorm as GroupNorm
from .layers.normalization import LayerNorm as LayerNorm
from .layers.normalization import LocalResponseNorm as LocalResponseNorm
from .layers.normalization import RMSLayerNorm as RMSLayerNorm
from .layers.normalization import RMSNorm as RMSNorm
from .layers.padding import CircularPad1d as CircularPad1d
from .layers.padding import CircularPad2d as CircularPad2d
from .layers.padding import CircularPad3d as CircularPad3d
from .layers.padding import ConstantPad1d as ConstantPad1d
from .layers.padding import ConstantPad2d as ConstantPad2d
from .layers.padding import ConstantPad3d as ConstantPad3d
from .layers.padding import ReflectionPad1d as ReflectionPad1d
from .layers.padding import ReflectionPad2d as ReflectionPad2d
from .layers.padding import ReflectionPad3d as ReflectionPad3d
from .layers.padding import ReplicationPad1d as ReplicationPad1d
from .layers.padding import ReplicationPad2d as ReplicationPad2d
from .layers.padding import ReplicationPad3d as ReplicationPad3d
from .layers.padding import ZeroPad1d as ZeroPad1d
from .layers.padding import ZeroPad2d as ZeroPad2d
from .layers.padding import ZeroPad3d as ZeroPad3d
from .layers.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from .layers.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from .layers.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from .layers.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from .layers.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from .layers.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from .layers.pooling import AvgPool1d as AvgPool1d
from .layers.pooling import AvgPool2d as AvgPool2d
from .layers.pooling import AvgPool3d as AvgPool3d
from .layers.pooling import MaxPool1d as MaxPool1d
from .layers.pooling import MaxPool2d as MaxPool2d
from .layers.pooling import MaxPool3d as MaxPool3d
from .layers.quantized_linear import QuantizedLinear as QuantizedLinear
from .layers.rnn import GRU as GRU
from .layers.rnn import LSTM as LSTM
from .layers.rnn import RNN as RNN
from .layers.rnn import GRUCell as GRUCell
from .layers.rnn import LSTMCell as LSTMCell
from .layers.rnn import RNNBase as RNNBase
from .layers.rnn import RNNCell as RNNCell
from .layers.rnn import RNNCellBase as RNNCellBase
from .layers.unpooling import FractionalMaxPool2d as FractionalMaxPool2d
from .layers.unpooling import FractionalMaxPool3d as FractionalMaxPool3d
from .layers.unpooling import LPPool1d as LPPool1d
from .layers.unpooling import LPPool2d as LPPool2d
from .layers.unpooling import LPPool3d as LPPool3d
from .layers.unpooling import MaxUnpool1d as MaxUnpool1d
from .layers.unpooling import MaxUnpool2d as MaxUnpool2d
from .layers.unpooling import MaxUnpool3d as MaxUnpool3d
from .layers.vision import ChannelShuffle as ChannelShuffle
from .layers.vision import Fold as Fold
from .layers.vision import PixelShuffle as PixelShuffle
from .layers.vision import PixelUnshuffle as PixelUnshuffle
from .layers.vision import Unfold as Unfold
from .layers.vision import Upsample as Upsample
from .layers.vision import UpsamplingBilinear2d as UpsamplingBilinear2d
from .layers.vision import UpsamplingNearest2d as UpsamplingNearest2d
from .module import Module as Module
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter_containers import ParameterDict as ParameterDict
from .parameter_containers import ParameterList as ParameterList

# Rarely used layers are imported on first access: importing sbpjax stays quick.
_LAZY_NAMES = {
    "layers.adaptive": """AdaptiveLogSoftmaxWithLoss""",
    "datapipe": """CoinFlip CropMirrorNormalize""",
    "lazy": """LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d
 LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear
 UninitializedBuffer UninitializedParameter""",
    "quantization": """FakeQuantization MinMaxObserver MovingAverageMinMaxObserver
 QatConv1d QatConv2d QatConv3d Quantization""",
    "layers.transformer": """Transformer TransformerDecoder
 TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer""",
}
_CLASSES = [f"{name}=nn.{module}:{name}" for module, names in _LAZY_NAMES.items() for name in names.split()]
# Names of packages that build on this one.
_ABOVE = """DataParallel=distributed.data_parallel:DataParallel Graph=graph:Graph
 GPTIndexedBinDataReader=data.token_reader:GPTIndexedBinDataReader
 from_flax=_core.tracing.from_flax:from_flax to_flax=_core.tracing.to_flax:to_flax
 to_pure=_core.tracing.pure:to_pure"""
_MODULES = " ".join([*_CLASSES, _ABOVE, "graph modules parallel utils"])
__getattr__, __dir__ = _reexport_hooks(
    "nn", globals(), modules=_MODULES, add_argument_errors=lambda named: _add_argument_errors(named, Module)
)

_add_argument_errors(globals(), Module)

_inspect = _LazyModule("sbpjax._core.inspect.summary")  # of a higher package, for notebooks


def _repr_html_(self: Module) -> str:
    return _inspect.summary(self)._repr_html_()


Module._repr_html_ = _repr_html_  # type: ignore[attr-defined]
del _repr_html_, _resting, _ABOVE, _CLASSES, _LAZY_NAMES, _LazyModule, _MODULES, _Pause
