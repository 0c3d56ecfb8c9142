"""PyTorch's place for these names: channels as pixels."""

from sbpjax.nn.vision import PixelShuffle as PixelShuffle
from sbpjax.nn.vision import PixelUnshuffle as PixelUnshuffle
