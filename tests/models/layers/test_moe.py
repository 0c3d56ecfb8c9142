"""A mixture of experts: against torch by hand, with and without a capacity, on one device and split."""

import jax
import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import models, nn
from sbpjax.models.layers import MoE, routing_loss, routing_sums
from sbpjax.models.layers.moe import _collect_outputs, _dispatch_tokens, _route_choices

B, T, D, F, E, K = 4, 10, 8, 12, 4, 2
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}
MESHES = {
    "ep": {"expert": 4},
    "ep_dp": {"data": 2, "expert": 2},
    "ep_tp": {"expert": 2, "tensor": 2},
    "ep_fsdp_tp": {"fsdp": 2, "expert": 2, "tensor": 2},
    "dp": {"data": 4},
    "tp": {"tensor": 4},
    "uneven": {"expert": 3},
}


def drawn(shape=(B, T, D)):
    return np.random.default_rng(0).standard_normal(shape).astype("f")


def made(capacity=None):
    flow.manual_seed(0)
    return MoE(D, F, E, K, "silu", capacity)


def by_hand(layer, x, places):
    """Return what the layer should; `places` has the choices `(b, choice, t)` that an expert takes."""
    g, u, d, r = (torch.tensor(p.detach().numpy(), requires_grad=True) for p in layer.parameters())
    odds, experts = torch.softmax(x @ r.T, -1).topk(K, dim=-1)
    odds = odds / odds.sum(-1, keepdim=True)
    out = []
    for b, t in np.ndindex(B, T):
        total = torch.zeros(D)
        for k in range(K):
            if places is None or (b, k, t) in places:
                e = experts[b, t, k]
                hidden = torch.nn.functional.silu(x[b, t] @ g[e]) * (x[b, t] @ u[e])
                total = total + odds[b, t, k] * (hidden @ d[e])
        out.append(total)
    return torch.stack(out).reshape(x.shape), experts.numpy(), [g, u, d, r]


def taken(experts, capacity, attention_mask=None):
    """Return the choices that find a place, first choices first, of each sequence by itself."""
    found = set()
    for b in range(B):
        used = [0] * E
        for k, t in np.ndindex(K, T):
            if attention_mask is None or attention_mask[b, t]:
                e = experts[b, t, k]
                used[e] += 1
                if used[e] <= capacity:
                    found.add((b, k, t))
    return found


@pytest.mark.parametrize("capacity", [None, 4.0, 1.0, 0.5])
def test_as_by_hand(capacity):
    layer, x = made(capacity), torch.tensor(drawn(), requires_grad=True)
    _, experts, _ = by_hand(layer, x, None)
    places = None if capacity is None else taken(experts, min(T, int(np.ceil(capacity * T * K / E))))
    if capacity in (1.0, 0.5):
        assert len(places) < B * T * K  # some had no place
    want, _, theirs = by_hand(layer, x, places)
    ours = flow.tensor(drawn(), requires_grad=True)
    found, logits, got = layer(ours)
    np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), **TOLERANCE)
    assert logits.shape == (B, T, E)
    np.testing.assert_array_equal(got.numpy(), [np.bincount(e.reshape(-1), minlength=E) for e in experts])
    (want**2).sum().backward()
    (found**2).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), x.grad.numpy(), rtol=1e-4, atol=1e-5)
    for p, q in zip(layer.parameters(), theirs, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_padding_takes_no_place():
    layer, x = made(0.5), drawn()
    attention_mask = np.arange(T)[None] < np.array([[10], [3], [0], [7]])
    given = torch.tensor(x)
    experts = by_hand(layer, given, None)[1]
    want = by_hand(layer, given, taken(experts, int(np.ceil(0.5 * T * K / E)), attention_mask))[0]
    found, _, got = layer(flow.tensor(x), flow.tensor(attention_mask))
    assert got.sum(1).tolist() == [20, 6, 0, 14]
    np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), **TOLERANCE)
    found, _, again = layer(flow.tensor(x), flow.tensor(attention_mask), dropless=True)
    assert flow.equal(got, again)
    np.testing.assert_allclose(found.detach().numpy(), by_hand(layer, given, None)[0].detach().numpy(), **TOLERANCE)


class Step(nn.Graph):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def build(self, x):
        out, logits, _ = self.layer(x)
        ((out**2).sum() + (logits**2).sum()).backward()
        return out, self.layer.router.weight.grad, self.layer.gate.grad, self.layer.up.grad, self.layer.down.grad


LOGICAL_AXES = {
    "router.weight": ("whole", "width"),
    "down": ("experts", "hidden", "width"),
    "*": ("experts", "width", "hidden"),
}
TABLE = models.Sharding(LOGICAL_AXES, axis_sizes=lambda config: {"experts": E, "hidden": F})


OFTEN = [(None, "ep"), (None, "uneven"), (1.0, "ep"), (1.0, "ep_fsdp_tp"), (1.0, "uneven")]
LAYOUTS = [
    pytest.param(capacity, mesh, marks=() if (capacity, mesh) in OFTEN else pytest.mark.exhaustive)
    for capacity in (None, 1.0)
    for mesh in MESHES
]


@pytest.mark.parametrize("capacity, mesh", LAYOUTS)
def test_every_layout_gives_the_values_of_one_device(capacity, mesh):
    want = [x.numpy() for x in Step(made(capacity))(flow.tensor(drawn()))]
    spec = models.Parallel(**MESHES[mesh], device="cpu")
    step = Step(models.parallelize(made(capacity), spec, TABLE))
    for ours, theirs in zip(step(spec.place(drawn())), want, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, **TOLERANCE)
    traffic = step.traffic()
    assert traffic.planned == traffic.compiled


def test_tokens_go_to_their_experts_and_back_by_all_to_all():
    spec = models.Parallel(expert=4, device="cpu")
    step = Step(models.parallelize(made(1.0), spec, TABLE))
    step(spec.place(drawn()))
    rows = [line for line in str(step.explain(level=2)).splitlines() if "all_to_all" in line]
    # There and back, and the gradient of what came back: of 4 · 4 · 5 · 8 numbers a rank has 1/4, and receives 3/16.
    assert len(rows) == 3 and all(" 480 " in row for row in rows), step.explain(level=2)


def test_where_rows_come_from():
    random = np.random.default_rng(0)
    experts = np.stack([random.permutation(E)[:K] for _ in range(B * T)]).reshape(B, T, K)
    for capacity in (None, 3, 20):
        row, choice, sizes, _ = jax.jit(_route_choices, static_argnames=("count", "capacity"))(
            experts, count=E, capacity=capacity
        )
        rows = K * T if capacity is None else E * capacity
        assert row.shape == (B, K * T) and choice.shape == (B, rows)
        np.testing.assert_array_equal(sizes, [np.bincount(e.reshape(-1), minlength=E) for e in experts])
        for b in range(B):
            for n, r in enumerate(row[b]):
                assert r == rows or choice[b, r] == n
            for r, n in enumerate(choice[b]):
                assert n == K * T or row[b, n] == r
        x = random.standard_normal((B, T, 2))
        spread = _dispatch_tokens(x, row, choice)
        np.testing.assert_array_equal(spread.any(-1), choice < K * T)
        back = _collect_outputs(spread, row, choice)
        kept = (np.asarray(row) < rows)[..., None]
        np.testing.assert_array_equal(back, np.where(kept, np.tile(x, (1, K, 1)), 0))


def test_losses_of_a_router():
    logits = drawn((2, 3, E))
    attention_mask = np.array([[1, 1, 1], [1, 0, 0]])
    flat = logits[attention_mask == 1]
    odds = np.exp(flat) / np.exp(flat).sum(-1, keepdims=True)
    shares = np.bincount(np.argsort(-flat)[:, :K].reshape(-1), minlength=E) / 4
    lse = np.log(np.exp(flat).sum(-1))
    got = flow.tensor(shares * 4)[None]
    sums = routing_sums(flow.tensor(logits), got, flow.tensor(attention_mask))
    want = 0.3 * E * (shares * odds.mean(0)).sum() + 0.2 * (lse**2).mean()
    np.testing.assert_allclose(routing_loss(sums, 0.3, 0.2).item(), want, rtol=1e-5)
    alike = routing_sums(flow.zeros(1, 4, E), flow.full((1, E), 2))
    np.testing.assert_allclose(routing_loss(alike, 1.0, 0.0).item(), K, rtol=1e-6)  # K where all are used alike
