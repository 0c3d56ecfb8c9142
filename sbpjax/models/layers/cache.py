"""Key-value cache of a fixed number of slots, for decoding token by token.

A cache has a fixed number of slots, and so one program serves every token. Slot s holds what came s-th into the cache;
that is a token's position only where no padding stands before it.
"""

from __future__ import annotations

from jax import lax

import sbpjax as flow
from sbpjax import nn


def _put(whole, part, cache_position, dim: int):
    return lax.dynamic_update_slice_in_dim(whole, part, cache_position, dim)


put = flow.wrap_jax(_put, name="put_in_slots")


class KeyValues(nn.Module):
    """The keys and values of one attention layer.

    Args:
        k: zeros `(B, K, S, C)` for S slots, in the layout that the cache keeps.
        v: likewise.

    Example:
        >>> cache = flow.models.layers.KeyValues(flow.zeros(1, 1, 4, 2), flow.zeros(1, 1, 4, 2))
        >>> k, v = cache.extend(flow.ones(1, 1, 1, 2), flow.ones(1, 1, 1, 2), flow.tensor(2))
        >>> k[0, 0, :, 0].tolist()
        [0.0, 0.0, 1.0, 0.0]
    """

    k: flow.Tensor
    v: flow.Tensor

    def __init__(self, k: flow.Tensor, v: flow.Tensor):
        super().__init__()
        self.register_buffer("k", k)
        self.register_buffer("v", v)

    def extend(self, k: flow.Tensor, v: flow.Tensor, cache_position: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
        """Put keys and values of T tokens into slots, and return those of all slots.

        Args:
            k: `(B, K, T, C)`.
            v: likewise.
            cache_position: the slot of the first one, a number; ``cache_position + T`` is at most S.

        Returns:
            Two ``(B, K, S, C)``; slots that nothing was put into are zero.
        """
        self.k.copy_(put(self.k, k.to(self.k.dtype), cache_position, 2))
        self.v.copy_(put(self.v, v.to(self.v.dtype), cache_position, 2))
        return self.k, self.v
