"""Layers shared by vision models. Shapes: B batch, C channels, H and W of a map, N tokens, D width."""

from . import windows as windows
from .image_model import FeatureMaps as FeatureMaps
from .image_model import ImageConfig as ImageConfig
from .image_model import ImageModel as ImageModel
from .image_model import checked_classes as checked_classes
from .layers import ACTIVATIONS as ACTIVATIONS
from .layers import MLP as MLP
from .layers import ChannelNorm as ChannelNorm
from .layers import ConvNorm as ConvNorm
from .layers import DropPath as DropPath
from .layers import PooledHead as PooledHead
from .layers import SameConv2d as SameConv2d
from .layers import SqueezeExcite as SqueezeExcite
from .layers import activation as activation
from .layers import divisible as divisible
from .layers import drop_path_rates as drop_path_rates
from .layers import kaiming_convolutions as kaiming_convolutions
from .layers import truncated_weights as truncated_weights
