"""PyTorch's place for these names: normalisation within one sample."""

from sbpjax.nn.normalization import CrossMapLRN2d as CrossMapLRN2d
from sbpjax.nn.normalization import GroupNorm as GroupNorm
from sbpjax.nn.normalization import LayerNorm as LayerNorm
from sbpjax.nn.normalization import LocalResponseNorm as LocalResponseNorm
from sbpjax.nn.normalization import RMSLayerNorm as RMSLayerNorm
from sbpjax.nn.normalization import RMSNorm as RMSNorm
