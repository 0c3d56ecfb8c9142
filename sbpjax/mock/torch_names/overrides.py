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


def is_tensor_like(inp) -> bool:
    """Return whether an object is a tensor."""
    from sbpjax.tensor import Tensor

    return isinstance(inp, Tensor)


class TorchFunctionMode:
    """A context in which nothing is overridden."""

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        pass
