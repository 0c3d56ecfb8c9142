"""PyTorch's place for these names: ranges."""

from sbpjax.nn.quantization import MinMaxObserver as MinMaxObserver
