"""Rows of the table of ops whose functions stand in rooms above it; each is loaded when it is first asked for."""

from __future__ import annotations

from sbpjax.functions.table import written

written("cond", "sbpjax.tracing.cond")
written("vmap", "sbpjax.tracing.vmap")
written("wrap_jax", "sbpjax.tracing.wrap_jax")
written("simulate", "sbpjax.distributed.threads")
written("utils.load_library", "sbpjax.compat.small")
written("compile explain load_graph visualize", "sbpjax.graph")
written("summary", "sbpjax.inspect.summary")
written("load save", "sbpjax.data.save_load")
for _name in ("kaiming_normal_", "kaiming_uniform_", "orthogonal_", "xavier_normal_", "xavier_uniform_"):
    written(f"Tensor.{_name}", "sbpjax.nn.init")
