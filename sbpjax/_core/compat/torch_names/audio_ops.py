"""Operators of torchaudio's compiled library, `torch.ops.torchaudio`, computed by sbpjax.

    torch.ops.torchaudio._lfilter_core_loop(x, coefficients, out)       # writes the filtered signal into `out`

`torchaudio.functional.lfilter` and all biquad filters call it. Forced alignment and the RNN-T loss have no counterpart.
"""

from __future__ import annotations

import jax
from jax import numpy as jnp

from sbpjax._core.tensor import Tensor
from sbpjax._core.tracing.wrap_jax import wrap_jax


def is_align_available() -> bool:
    """Return False: forced alignment is one of the kernels of torchaudio's own."""
    return False


def cuda_version() -> None:
    """Return None: there is no build for CUDA."""


def _filter(x: jax.Array, past: jax.Array) -> jax.Array:
    def step(last, sample):
        y = sample - (past * last).sum(-1)
        return jnp.concatenate([last, y[..., None]], -1)[..., 1:], y

    start = jnp.zeros((*x.shape[:2], past.shape[1]), x.dtype)
    return jnp.moveaxis(jax.lax.scan(step, start, jnp.moveaxis(x, -1, 0))[1], 0, -1)


_filtered = wrap_jax(_filter, name="lfilter")


def _lfilter_core_loop(input: Tensor, a_flipped: Tensor, padded: Tensor) -> None:
    """Write ``y[t] = x[t] - sum of a[k] y[t - k]`` into ``padded``, after its ``n - 1`` zeros.

    Args:
        input: ``(N, C, T)``.
        a_flipped: ``(C, n)``, the coefficients, the last one is that of ``y[t]`` and 1.
        padded: ``(N, C, T + n - 1)``, zeros.
    """
    order = a_flipped.shape[1]
    if order == 1:
        padded.copy_(input)
    else:
        padded[:, :, order - 1 :] = _filtered(input, a_flipped[:, :-1])
