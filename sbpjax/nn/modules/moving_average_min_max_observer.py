"""PyTorch's place for these names: ranges that follow."""

from sbpjax.nn.quantization import MovingAverageMinMaxObserver as MovingAverageMinMaxObserver
