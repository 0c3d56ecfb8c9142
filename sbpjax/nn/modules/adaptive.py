"""PyTorch's place for these names: a softmax of many classes."""

from sbpjax.nn.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from sbpjax.nn.adaptive import _ASMoutput as _ASMoutput
