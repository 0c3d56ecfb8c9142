"""PyTorch's place for these names: fake quantisation."""

from sbpjax.nn.quantization import FakeQuantization as FakeQuantization
