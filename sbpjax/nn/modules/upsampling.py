"""PyTorch's place for these names: resizing."""

from sbpjax.nn.vision import Upsample as Upsample
from sbpjax.nn.vision import UpsamplingBilinear2d as UpsamplingBilinear2d
from sbpjax.nn.vision import UpsamplingNearest2d as UpsamplingNearest2d
