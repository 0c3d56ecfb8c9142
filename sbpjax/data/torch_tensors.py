"""Conversion from and to PyTorch tensors: `from_torch` and `to_torch`."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions.protocols import from_dlpack
from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.from_data import from_numpy
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax.errors import OpTypeError

torch = LazyModule("torch")  # no dependency


def from_torch(torch_tensor: Any) -> Tensor:
    """Return a PyTorch tensor's values, in its memory where XLA can read them there.

    Args:
        torch_tensor: a dense `torch.Tensor`; its gradient is not taken along.

    Raises:
        OpTypeError: the value is no dense `torch.Tensor`.
    """
    if not type(torch_tensor).__module__.startswith("torch"):
        seen = f"a {type(torch_tensor).__name__}"
        raise OpTypeError("from_torch(x)", seen, "x is a torch.Tensor", "sbpjax.tensor(x)")
    source = torch_tensor.detach().contiguous()
    if source.dtype.is_complex or str(source.dtype) == "torch.bool" or not source.numel():
        return from_numpy(source.cpu().numpy())
    return from_dlpack(source)


def to_torch(flow_tensor: Tensor) -> Any:
    """Return a tensor's values as a `torch.Tensor` with memory of its own, on the CPU; a global one whole.

    Raises:
        OpTypeError: the value is no sbpjax tensor.
    """
    if not isinstance(flow_tensor, Tensor):
        seen = f"a {type(flow_tensor).__name__}"
        raise OpTypeError("to_torch(x)", seen, "x is an sbpjax.Tensor", "torch.as_tensor(x)")
    if flow_tensor.dtype == dtypes.bfloat16:  # NumPy's own dtypes have none
        return torch.from_numpy(flow_tensor.detach().float().numpy().copy()).bfloat16()
    return torch.from_numpy(flow_tensor.detach().numpy().copy())
