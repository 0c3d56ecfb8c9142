"""`torch._subclasses`: tensors without memory that PyTorch's tracer uses; nothing is one here."""

from __future__ import annotations

from .absent import absences

__getattr__ = absences("torch._subclasses", "JAX traces programs", "jax.eval_shape, or device='meta'")
