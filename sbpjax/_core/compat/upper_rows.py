"""Lazy public names of lower packages whose functions are defined in upper ones; each is loaded on first use.

They are rows of the table of ops, and notebook views of placements, sbps and tensors.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from sbpjax._core.functions.table.table import custom
from sbpjax._core.tensor import Tensor
from sbpjax.sbp.algebra import sbp
from sbpjax.sbp.placement import placement

custom("cond", "sbpjax._core.tracing.cond")
custom("vmap", "sbpjax._core.tracing.vmap")
custom("wrap_jax", "sbpjax._core.tracing.wrap_jax")
custom("simulate", "sbpjax.distributed.threads")
custom("load_ipython_extension", "sbpjax.distributed.notebook")
custom("utils.load_library", "sbpjax._core.compat.small")
custom("compile explain load_graph visualize", "sbpjax.graph")
custom("summary", "sbpjax._core.inspect.summary")
custom("load save", "sbpjax.data.save_load")
custom("Tensor.to_sparse Tensor.to_sparse_csr", "sbpjax._core.compat.torch_names.sparse")
custom("Tensor.full_tensor Tensor.redistribute", "sbpjax._core.compat.torch_names.dtensor.tensor")
custom("Tensor.to_sparse_coo", "sbpjax._core.compat.torch_names.sparse", own="to_sparse")
for _name in ("kaiming_normal_", "kaiming_uniform_", "orthogonal_", "xavier_normal_", "xavier_uniform_"):
    custom(f"Tensor.{_name}", "sbpjax.nn.init")


def _in_notebooks(name: str) -> Callable[[Any], str]:
    return lambda self: getattr(importlib.import_module("sbpjax._core.inspect.notebook"), name)(self)


placement._repr_html_ = _in_notebooks("placement_html")  # type: ignore[attr-defined]
sbp._repr_html_ = _in_notebooks("sbp_html")  # type: ignore[attr-defined]
Tensor._repr_html_ = _in_notebooks("tensor_html")  # type: ignore[attr-defined]
