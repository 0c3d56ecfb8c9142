"""Mixture of experts: a router sends each token to a few MLPs.

With 4 tokens, 2 choices each and 3 experts, rows sorted by expert (numbers are tokens, once for each choice):

    dropless       rows      0 2 | 0 1 2 3 | 1 3        as many rows as choices: grouped products
    capacity 3     rows      0 2 – | 0 1 2 | 1 3 –      3 rows for each expert: token 3 has no place in the second

Rows are sorted within each sequence, so that a split batch stays split. With a capacity they are ``(B, E, C, D)``:
where the batch is split over an axis, and the experts' matrices too, they change from split(0) to split(1), which is an
all-to-all, and back behind the experts. A capacity counts for each sequence, so that the tokens without a place are the
same in every layout, and with any number of micro-batches.

Source: Shazeer et al., arXiv:1701.06538; Lepikhin et al., GShard, arXiv:2006.16668; Jiang et al., Mixtral of Experts,
arXiv:2401.04088; Gale et al., MegaBlocks, arXiv:2211.15841.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

from .mlp import ACTIVATIONS


def _route_choices(experts, attention_mask=None, *, count: int, capacity: int | None):
    """Return where choices go and where rows come from, for choices numbered ``choice · T + token``.

    Args:
        experts: ``(B, T, K)`` integers.
        attention_mask: ``(B, T)``, nonzero for tokens, 0 for padding, which takes no capacity; None without padding.
        count: E.
        capacity: C, rows of each expert for a sequence; None for as many as are wanted.

    Returns:
        The row of each choice ``(B, K T)``, S where it has none; the choice of each row ``(B, S)``, ``K T`` where it
        has none; how many rows each expert has ``(B, E)``; and how many choices of present tokens it got ``(B, E)``.
    """
    batch, tokens, choices = experts.shape
    total = tokens * choices
    wanted = experts.swapaxes(1, 2).reshape(batch, total, 1) == jnp.arange(count, dtype=experts.dtype)
    there = wanted if attention_mask is None else wanted & jnp.tile(attention_mask != 0, (1, choices))[:, :, None]
    got = there.sum(1, dtype=np.int32)  # (B, E)
    wanted = wanted if capacity is None else there
    upto = jnp.cumsum(wanted, 1, dtype=np.int32)
    sizes = upto[:, -1]  # (B, E)
    if capacity is None:
        rows = total
        first = (jnp.cumsum(sizes, 1, dtype=np.int32) - sizes)[:, None]
    else:
        rows = count * capacity
        first = capacity * jnp.arange(count, dtype=np.int32)[None, None]
        wanted = wanted & (upto <= capacity)
    row = jnp.where(wanted.any(-1), jnp.where(wanted, first + upto - 1, 0).sum(-1, dtype=np.int32), np.int32(rows))

    def invert(row):
        return jnp.full(rows, total, np.int32).at[row].set(jnp.arange(total, dtype=np.int32), mode="drop")

    return row, jax.vmap(invert)(row), sizes, got


def _gather_rows(x, index):
    """Return ``x[b, index[b, i]]`` ``(B, I, D)``, zeros where an index is behind the end."""
    return jnp.take_along_axis(x, index[:, :, None], axis=1, mode="fill", fill_value=0)


# Both are permutations with repeats, so each has the other as its gradient: a read, where that of a read by an index
# would be a sum into places.


@jax.custom_vjp
def _dispatch_tokens(x, row, choice):
    """Return the rows of experts ``(B, S, D)`` of tokens ``(B, T, D)``; zeros in empty ones."""
    tokens = x.shape[1]
    total = row.shape[1]
    return _gather_rows(x, jnp.where(choice < total, choice % tokens, tokens))


def _spread_back(kept, ct):
    row, choice, tokens = kept
    found = _gather_rows(ct, row)  # (B, K T, D)
    return found.reshape(found.shape[0], -1, tokens, found.shape[-1]).sum(1), None, None


_dispatch_tokens.defvjp(
    lambda x, row, choice: (_dispatch_tokens(x, row, choice), (row, choice, x.shape[1])), _spread_back
)


@jax.custom_vjp
def _collect_outputs(rows, row, choice):
    """Return of each choice what its expert made, ``(B, K T, D)``; zeros where it had no place."""
    return _gather_rows(rows, row)


_collect_outputs.defvjp(
    lambda rows, row, choice: (_collect_outputs(rows, row, choice), choice),
    lambda choice, ct: (_gather_rows(ct, choice), None, None),
)

# One equation of the plan each: of its many, all split the batch.
_OUT = "S0, S0, S0, S0"
places = flow.wrap_jax(_route_choices, name="places_of_experts", sbp_rule=[f"S0 -> {_OUT}"])
places_of_present = flow.wrap_jax(_route_choices, name="places_of_experts", sbp_rule=[f"S0, S0 -> {_OUT}"])
spread = flow.wrap_jax(_dispatch_tokens, name="spread_to_experts")
collected = flow.wrap_jax(_collect_outputs, name="collect_from_experts")


class MoE(nn.Module):
    """Mixture of experts: a router sends each token to some of the gated MLPs and weights their outputs.

    Args:
        width: D, of the input and the output.
        hidden: F, between the matrices of an expert.
        experts: E, how many there are.
        choices: K, through how many a token goes.
        activation: a name of `ACTIVATIONS`.
        capacity: rows that each expert has for a sequence, as a multiple of T K / E; None for as many as are wanted.

    Example:
        >>> moe = flow.models.layers.MoE(8, 24, experts=4, choices=2, activation="silu")
        >>> out, logits, got = moe(flow.ones(2, 5, 8))
        >>> out.shape, logits.shape, got.sum(1).tolist()
        (sbpjax.Size([2, 5, 8]), sbpjax.Size([2, 5, 4]), [10, 10])
    """

    def __init__(
        self, width: int, hidden: int, experts: int, choices: int, activation: str, capacity: float | None = None
    ):
        super().__init__()
        self.experts, self.choices, self.capacity = experts, choices, capacity
        self.activation = ACTIVATIONS[activation]
        self.router = nn.Linear(width, experts, bias=False)
        self.gate = nn.Parameter(flow.empty(experts, width, hidden))
        self.up = nn.Parameter(flow.empty(experts, width, hidden))
        self.down = nn.Parameter(flow.empty(experts, hidden, width))
        for matrix in (self.gate, self.up, self.down):
            nn.init.normal_(matrix, std=matrix.shape[1] ** -0.5)

    def forward(
        self, x: flow.Tensor, attention_mask: flow.Tensor | None = None, dropless: bool = False
    ) -> tuple[flow.Tensor, flow.Tensor, flow.Tensor]:
        """Return what the experts make of tokens, and what the router's losses are made of.

        Args:
            x: `(B, T, D)`; any split of B.
            attention_mask: `(B, T)`, nonzero for tokens, 0 for padding, which takes no place of a capacity.
            dropless: ignore the capacity.

        Returns:
            ``(B, T, D)``; the router's logits ``(B, T, E)`` in float32; and how many choices of present tokens each
            expert got, ``(B, E)``. Of a split batch all are split alike.
        """
        batch, tokens, width = x.shape
        logits = self.router(x).float()
        odds, experts = logits.softmax(-1).topk(self.choices, dim=-1)  # (B, T, K)
        odds = (odds / odds.sum(-1, keepdim=True)).to(x.dtype)
        rows_each = None if dropless or self.capacity is None else self._rows_each(tokens)
        how = {"count": self.experts, "capacity": rows_each}
        row, choice, sizes, got = (
            places(experts, **how) if attention_mask is None else places_of_present(experts, attention_mask, **how)
        )
        rows = spread(x, row, choice)  # (B, S, D)
        if rows_each is None:
            product = functools.partial(F.grouped_matmul, group_sizes=sizes)
        else:
            rows = rows.reshape(batch, self.experts, rows_each, width)
            product = functools.partial(flow.einsum, "becd,edf->becf")
        hidden = self.activation(product(rows, self.gate)) * product(rows, self.up)
        made = product(hidden, self.down).reshape(batch, -1, width)  # (B, S, D)
        made = collected(made, row, choice).reshape(batch, self.choices, tokens, width)
        return (made * odds.transpose(1, 2).unsqueeze(-1)).sum(1), logits, got

    def _rows_each(self, tokens: int) -> int:
        """Return C, of a sequence of T tokens: at most what one expert could be wanted for."""
        assert self.capacity is not None
        return min(tokens, max(math.ceil(self.capacity * tokens * self.choices / self.experts), 1))


def routing_sums(logits: flow.Tensor, got: flow.Tensor, attention_mask: flow.Tensor | None = None) -> flow.Tensor:
    """Return what the losses of a router are made of, summed over tokens; layers are added up.

    Args:
        logits: `(B, T, E)` float32, of the router.
        got: `(B, E)`, how many choices each expert got.
        attention_mask: `(B, T)`, nonzero where there is a token; None if all are.

    Returns:
        ``(2 E + 2,)``: how many choices each expert got, the sum of its probabilities, that of the squared logarithms
        of the sums of exponentials, and how many tokens there are.

    Example:
        >>> flow.models.layers.routing_sums(flow.zeros(1, 3, 2), flow.tensor([[1, 2]]))
        tensor([1.0000, 2.0000, 1.5000, 1.5000, 1.4414, 3.0000])
    """
    there = flow.ones_like(logits[..., :1]) if attention_mask is None else attention_mask.to(logits.dtype).unsqueeze(-1)
    squares = (logits.logsumexp(-1, keepdim=True) ** 2) * there
    terms = flow.cat([logits.softmax(-1) * there, squares, there], dim=-1)  # (B, T, E + 2)
    return flow.cat([got.to(logits.dtype).sum(0), terms.sum((0, 1))])


def routing_loss(sums: flow.Tensor, balance: float, z: float, tokens: int | None = None) -> flow.Tensor:
    """Return the losses of a router: that of unequal use of experts, and that of large logits.

    With f the choices that an expert got per token, and p its mean probability, the first is E · Σ f p, which is K
    where all are used alike; the second is the mean of lse², lse = log Σ exp(logits).

    Args:
        sums: of `routing_sums`, added up over layers.
        balance: factor of the first.
        z: factor of the second.
        tokens: how many tokens the sums are of, over all layers, where all count; by default those of the sums. Known
            before the step, it makes the second one of a batch the mean of its micro-batches'; the first is that of
            each micro-batch in any case.

    Returns:
        A number, float32.

    Example:
        >>> sums = flow.models.layers.routing_sums(flow.zeros(1, 4, 2), flow.tensor([[2, 2]]))
        >>> round(flow.models.layers.routing_loss(sums, balance=0.5, z=0.0).item(), 4)
        0.5

    Source: Fedus et al., Switch Transformers, arXiv:2101.03961, (4) to (6); Zoph et al., ST-MoE, arXiv:2202.08906, (5).
    """
    experts = (sums.shape[0] - 2) // 2
    count = sums[-1] if tokens is None else float(tokens)
    shares, odds = sums[:experts] / count, sums[experts : 2 * experts] / count
    loss = balance * experts * (shares * odds).sum()
    return loss + z * sums[-2] / count if z else loss
