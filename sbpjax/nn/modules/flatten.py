"""PyTorch's place for these names: dims joined and taken apart."""

from sbpjax.nn.linear import Flatten as Flatten
from sbpjax.nn.linear import Unflatten as Unflatten
