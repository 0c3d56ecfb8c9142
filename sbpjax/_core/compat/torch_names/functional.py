"""`torch.nn.functional`: names besides the functions of `sbpjax.nn.functional`."""

from __future__ import annotations

from .absent import absent
from .overrides import handle_torch_function as handle_torch_function

ScalingType = absent(
    "torch.nn.functional.ScalingType", "products of scaled numbers are kernels of PyTorch's own", "x @ w, in bfloat16"
)
