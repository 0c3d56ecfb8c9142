"""Handles of hooks, under PyTorch's name of their module."""

from sbpjax.autograd.node import RemovableHandle as RemovableHandle
