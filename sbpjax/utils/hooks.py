"""Handles of hooks, under PyTorch's name of their module."""

from sbpjax.tensor.tape.node import RemovableHandle as RemovableHandle
