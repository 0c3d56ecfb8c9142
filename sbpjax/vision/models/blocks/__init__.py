"""Layers shared by vision models. Shapes: B batch, C channels, H and W of a map, N tokens, D width."""

from . import windows as windows
from .activations import ACTIVATIONS as ACTIVATIONS
from .activations import activation as activation
from .conv import ConvNorm as ConvNorm
from .conv import SameConv2d as SameConv2d
from .conv import kaiming_convolutions as kaiming_convolutions
from .drop_path import DropPath as DropPath
from .drop_path import rising as rising
from .heads import PooledHead as PooledHead
from .image_model import FeatureMaps as FeatureMaps
from .image_model import ImageConfig as ImageConfig
from .image_model import ImageModel as ImageModel
from .image_model import checked_classes as checked_classes
from .inverted import Stage as Stage
from .inverted import inverted_stages as inverted_stages
from .mlp import MLP as MLP
from .mlp import ChannelNorm as ChannelNorm
from .mlp import truncated_weights as truncated_weights
from .squeeze import SqueezeExcite as SqueezeExcite
from .squeeze import divisible as divisible
