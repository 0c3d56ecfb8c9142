"""Activation checkpointing policies by name: the values kept by a checkpointed module for its backward.

A policy is an argument of `sbpjax.graph.program.forward_backward`: ``"nothing"``, None for everything, or a function of
a primitive.
"""

from __future__ import annotations

from typing import Any

import jax

POLICIES: dict[str, Any] = {
    "nothing": "nothing",
    "everything": None,
    "dots": jax.checkpoint_policies.dots_saveable,
    "dots_with_no_batch_dims": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "offload_dots": jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
}
