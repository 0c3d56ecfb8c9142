"""PyTorch's place for these names: quantisation."""

from sbpjax.nn.quantization import Quantization as Quantization
