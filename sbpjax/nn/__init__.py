"""Modules, layers, losses, initialisers: PyTorch's `torch.nn` over logical tensors."""

from sbpjax._core.runtime.gc_pause import Pause as _Pause  # isort: skip  # first of all

_resting = _Pause()

from sbpjax._core.functions.table.table import face as _face
from sbpjax._core.tensor.calls.argument_errors import tell_constructors as _tell
from sbpjax._core.tracing.from_flax import from_flax as from_flax
from sbpjax._core.tracing.pure import to_pure as to_pure

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
from .activation import RReLU as RReLU
from .activation import Sigmoid as Sigmoid
from .activation import SiLU as SiLU
from .activation import Softmax as Softmax
from .activation import Softmax2d as Softmax2d
from .activation import Softmin as Softmin
from .activation import Softplus as Softplus
from .activation import Softshrink as Softshrink
from .activation import Softsign as Softsign
from .activation import SquareReLU as SquareReLU
from .activation import Tanh as Tanh
from .activation import Tanhshrink as Tanhshrink
from .activation import Threshold as Threshold
from .attention import MultiheadAttention as MultiheadAttention
from .batchnorm import BatchNorm1d as BatchNorm1d
from .batchnorm import BatchNorm2d as BatchNorm2d
from .batchnorm import BatchNorm3d as BatchNorm3d
from .batchnorm import FusedBatchNorm1d as FusedBatchNorm1d
from .batchnorm import FusedBatchNorm2d as FusedBatchNorm2d
from .batchnorm import FusedBatchNorm3d as FusedBatchNorm3d
from .batchnorm import SyncBatchNorm as SyncBatchNorm
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import Sequential as Sequential
from .conv import Conv1d as Conv1d
from .conv import Conv2d as Conv2d
from .conv import Conv3d as Conv3d
from .conv_transpose import ConvTranspose1d as ConvTranspose1d
from .conv_transpose import ConvTranspose2d as ConvTranspose2d
from .conv_transpose import ConvTranspose3d as ConvTranspose3d
from .distance import CosineSimilarity as CosineSimilarity
from .distance import PairwiseDistance as PairwiseDistance
from .dropout import AlphaDropout as AlphaDropout
from .dropout import Dropout as Dropout
from .dropout import Dropout1d as Dropout1d
from .dropout import Dropout2d as Dropout2d
from .dropout import Dropout3d as Dropout3d
from .dropout import FeatureAlphaDropout as FeatureAlphaDropout
from .embedding import Embedding as Embedding
from .embedding import EmbeddingBag as EmbeddingBag
from .hooks import register_module_backward_hook as register_module_backward_hook
from .hooks import register_module_buffer_registration_hook as register_module_buffer_registration_hook
from .hooks import register_module_forward_hook as register_module_forward_hook
from .hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from .hooks import register_module_full_backward_hook as register_module_full_backward_hook
from .hooks import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from .hooks import register_module_module_registration_hook as register_module_module_registration_hook
from .hooks import register_module_parameter_registration_hook as register_module_parameter_registration_hook
from .instancenorm import InstanceNorm1d as InstanceNorm1d
from .instancenorm import InstanceNorm2d as InstanceNorm2d
from .instancenorm import InstanceNorm3d as InstanceNorm3d
from .linear import Bilinear as Bilinear
from .linear import Flatten as Flatten
from .linear import Identity as Identity
from .linear import Linear as Linear
from .linear import Unflatten as Unflatten
from .loss import BCELoss as BCELoss
from .loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from .loss import CrossEntropyLoss as CrossEntropyLoss
from .loss import CTCLoss as CTCLoss
from .loss import GaussianNLLLoss as GaussianNLLLoss
from .loss import HuberLoss as HuberLoss
from .loss import KLDivLoss as KLDivLoss
from .loss import L1Loss as L1Loss
from .loss import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from .loss import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from .loss import MSELoss as MSELoss
from .loss import NLLLoss as NLLLoss
from .loss import NLLLoss2d as NLLLoss2d
from .loss import PoissonNLLLoss as PoissonNLLLoss
from .loss import SmoothL1Loss as SmoothL1Loss
from .margin_loss import CombinedMarginLoss as CombinedMarginLoss
from .margin_loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from .margin_loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from .margin_loss import MarginRankingLoss as MarginRankingLoss
from .margin_loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from .margin_loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from .margin_loss import MultiMarginLoss as MultiMarginLoss
from .margin_loss import SoftMarginLoss as SoftMarginLoss
from .margin_loss import TripletMarginLoss as TripletMarginLoss
from .margin_loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from .module import Module as Module
from .normalization import CrossMapLRN2d as CrossMapLRN2d
from .normalization import GroupNorm as GroupNorm
from .normalization import LayerNorm as LayerNorm
from .normalization import LocalResponseNorm as LocalResponseNorm
from .normalization import RMSLayerNorm as RMSLayerNorm
from .normalization import RMSNorm as RMSNorm
from .padding import CircularPad1d as CircularPad1d
from .padding import CircularPad2d as CircularPad2d
from .padding import CircularPad3d as CircularPad3d
from .padding import ConstantPad1d as ConstantPad1d
from .padding import ConstantPad2d as ConstantPad2d
from .padding import ConstantPad3d as ConstantPad3d
from .padding import ReflectionPad1d as ReflectionPad1d
from .padding import ReflectionPad2d as ReflectionPad2d
from .padding import ReflectionPad3d as ReflectionPad3d
from .padding import ReplicationPad1d as ReplicationPad1d
from .padding import ReplicationPad2d as ReplicationPad2d
from .padding import ReplicationPad3d as ReplicationPad3d
from .padding import ZeroPad1d as ZeroPad1d
from .padding import ZeroPad2d as ZeroPad2d
from .padding import ZeroPad3d as ZeroPad3d
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter_containers import ParameterDict as ParameterDict
from .parameter_containers import ParameterList as ParameterList
from .pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from .pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from .pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from .pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from .pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from .pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from .pooling import AvgPool1d as AvgPool1d
from .pooling import AvgPool2d as AvgPool2d
from .pooling import AvgPool3d as AvgPool3d
from .pooling import MaxPool1d as MaxPool1d
from .pooling import MaxPool2d as MaxPool2d
from .pooling import MaxPool3d as MaxPool3d
from .quantized_linear import QuantizedLinear as QuantizedLinear
from .rnn import GRU as GRU
from .rnn import LSTM as LSTM
from .rnn import RNN as RNN
from .rnn import GRUCell as GRUCell
from .rnn import LSTMCell as LSTMCell
from .rnn import RNNBase as RNNBase
from .rnn import RNNCell as RNNCell
from .rnn import RNNCellBase as RNNCellBase
from .unpooling import FractionalMaxPool2d as FractionalMaxPool2d
from .unpooling import FractionalMaxPool3d as FractionalMaxPool3d
from .unpooling import LPPool1d as LPPool1d
from .unpooling import LPPool2d as LPPool2d
from .unpooling import LPPool3d as LPPool3d
from .unpooling import MaxUnpool1d as MaxUnpool1d
from .unpooling import MaxUnpool2d as MaxUnpool2d
from .unpooling import MaxUnpool3d as MaxUnpool3d
from .vision import ChannelShuffle as ChannelShuffle
from .vision import Fold as Fold
from .vision import PixelShuffle as PixelShuffle
from .vision import PixelUnshuffle as PixelUnshuffle
from .vision import Unfold as Unfold
from .vision import Upsample as Upsample
from .vision import UpsamplingBilinear2d as UpsamplingBilinear2d
from .vision import UpsamplingNearest2d as UpsamplingNearest2d

# Rarely used layers are imported when they are asked for: importing sbpjax stays quick.
_LATER = {
    "adaptive": """AdaptiveLogSoftmaxWithLoss""",
    "data_parallel": """DataParallel""",
    "datapipe": """CoinFlip CropMirrorNormalize""",
    "lazy": """LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d
 LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear
 UninitializedBuffer UninitializedParameter""",
    "quantization": """FakeQuantization MinMaxObserver MovingAverageMinMaxObserver
 QatConv1d QatConv2d QatConv3d Quantization""",
    "transformer": """Transformer TransformerDecoder
 TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer""",
}
_CLASSES = [f"{name}=nn.{module}:{name}" for module, names in _LATER.items() for name in names.split()]
# Graphs build on this package, so their names come when they are asked for.
_CLASSES.append("GPTIndexedBinDataReader=data.token_reader:GPTIndexedBinDataReader")  # of a room above, too
_MODULES = " ".join([*_CLASSES, "Graph=graph:Graph graph modules"])
__getattr__, __dir__ = _face("nn", globals(), modules=_MODULES, tell=lambda named: _tell(named, Module))

_tell(globals(), Module)


def _repr_html_(self: Module) -> str:
    from sbpjax._core.inspect.summary import summary  # of a room above, which notebooks alone need here

    return summary(self)._repr_html_()


Module._repr_html_ = _repr_html_  # type: ignore[attr-defined]
del _repr_html_, _resting, _CLASSES, _LATER, _MODULES
