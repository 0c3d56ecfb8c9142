"""PyTorch's place for these names: channels dealt out."""

from sbpjax.nn.vision import ChannelShuffle as ChannelShuffle
