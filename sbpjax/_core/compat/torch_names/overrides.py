"""`torch.overrides`: no class of tensors overrides functions here."""

from __future__ import annotations


def has_torch_function(relevant_args) -> bool:
    """Return False."""
    return False


def has_torch_function_unary(tensor) -> bool:
    """Return False."""
    return False


def has_torch_function_variadic(*tensors) -> bool:
    """Return False."""
    return False


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Call the function."""
    return public_api(*args, **kwargs)
