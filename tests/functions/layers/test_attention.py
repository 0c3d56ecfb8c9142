"""Attention of tensors, where the primitive runs: layouts, graphs, checkpoints, amp, transforms, choice of kernels."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, sbp
from sbpjax._core.compat.torch_names.nn_attention import SDPBackend, sdpa_kernel
from sbpjax._core.functions.layers.attention import attention_by
from sbpjax._core.ops.attention import attention
from sbpjax._core.ops.attention import blocks as attention_blocks
from sbpjax.nn import functional as F

S, B = sbp.split, sbp.broadcast
PLACES = {"4": [0, 1, 2, 3], "2x2": [[0, 1], [2, 3]]}


@pytest.fixture(autouse=True)
def everything_is_long(monkeypatch):
    monkeypatch.setattr(attention, "LONG", 0)
    monkeypatch.setattr(attention_blocks, "_ROWS", 32)
    monkeypatch.setattr(attention_blocks, "_KEYS", 32)
    with attention_by("kernel"):  # an op of its own: others may have been traced with the usual length
        yield


def run(arrays, mask, ct, place=None, layouts=None, **how):
    tensors = [flow.tensor(x) for x in arrays]
    mask, ct = (None if x is None else flow.tensor(x) for x in (mask, ct))
    if "segment_ids" in how:
        how["segment_ids"] = tuple(map(flow.tensor, how["segment_ids"]))
    if place is not None:
        tensors = [t.to_global(place, layout) for t, layout in zip(tensors, layouts)]
        broadcast = [B] * len(place.hierarchy)
        mask, ct = (None if x is None else x.to_global(place, broadcast) for x in (mask, ct))
        if "segment_ids" in how:
            how["segment_ids"] = tuple(x.to_global(place, broadcast) for x in how["segment_ids"])
    for t in tensors:
        t.requires_grad_()
    if mask is not None and mask.dtype.is_floating_point:
        tensors.append(mask.requires_grad_())
    out = F.scaled_dot_product_attention(*tensors[:3], mask, enable_gqa=True, **how)
    (out * ct).sum().backward()
    return out, [out.numpy(), *(t.grad.numpy() for t in tensors)]


CASES = [
    ("4", [S(0)] * 3, None, False),
    ("4", [S(1)] * 3, None, True),
    ("4", [S(2), B, B], None, True),
    ("4", [S(2), B, B], "bias", False),
    ("4", [S(0)] * 3, "keys", False),
    ("4", [B, B, B], "bias", False),
    ("4", [S(3), S(2), S(2)], "causal bias", False),
    ("2x2", [(S(0), S(1))] * 3, "keys", False),
    ("2x2", [(S(0), S(2)), (S(0), B), (S(0), B)], None, True),
    ("2x2", [(S(1), S(2)), (S(1), B), (S(1), B)], "bias", False),
    ("4", [S(0)] * 3, None, "segments"),
    ("4", [S(2), B, B], "bias", "window"),
    ("2x2", [(S(0), S(2)), (S(0), B), (S(0), B)], "keys", "all"),
    ("2x2", [(S(0), S(1))] * 3, None, "all"),
]


@pytest.mark.parametrize(("place", "layouts", "mask", "causal"), CASES)
def test_layouts(place, layouts, mask, causal):
    rng = np.random.default_rng(0)
    batch = 3 if place == "4" else 4  # three over 2 x 2 ranks are dearer to compute than to move
    shapes = (batch, 8, 70, 6), (batch, 4, 50, 6), (batch, 4, 50, 5), (batch, 8, 70, 5)
    q, k, v, ct = (rng.standard_normal(s).astype(np.float32) for s in shapes)
    masks = {"bias": rng.standard_normal((8, 70, 50)).astype(np.float32), "keys": rng.random((batch, 1, 1, 50)) < 0.7}
    masks["causal bias"] = np.where(np.tri(70, 50), 0, -np.inf).astype(np.float32)
    ids = tuple(np.sort(rng.integers(0, 3, (batch, n)), -1) for n in (70, 50))
    window = {"window_size": (30, 10), "soft_cap": 1.5}
    how = {"segments": {"segment_ids": ids}, "window": window, "all": {"segment_ids": ids, **window}}
    how = how.get(causal, {"is_causal": causal is True})
    where = flow.placement("cpu", PLACES[place])
    layouts = [list(x) if isinstance(x, tuple) else [x] for x in layouts]
    out, found = run((q, k, v), masks.get(mask), ct, where, layouts, **how)
    with attention_by("plain"):
        _, expected = run((q, k, v), masks.get(mask), ct, **how)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)
    if layouts[0][0] in (S(0), S(1), S(2)):
        assert list(out.sbp) == layouts[0]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        q, k, v = (y.reshape(*x.shape[:2], 4, 4).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(*x.shape)


@pytest.mark.parametrize("checkpointed", [False, True])
def test_in_a_graph(checkpointed):
    where = flow.placement("cpu", PLACES["4"])
    flow.manual_seed(0)
    model = Attention()
    x = flow.randn(4, 40, 16)
    loss = model(x).square().mean()
    loss.backward()
    expected = loss.item(), model.qkv.weight.grad.numpy()
    model.zero_grad()
    model.to_global(where, [B])
    start = model.qkv.weight.numpy()

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=1.0))
            if checkpointed:
                self.model.to(nn.graph.GraphModule).activation_checkpointing = True

        def build(self, x):
            loss = self.model(x).square().mean()
            loss.backward()
            return loss

    step = Step()
    loss = step(x.to_global(where, [S(0)]))
    np.testing.assert_allclose(loss.numpy(), expected[0], rtol=1e-5)
    np.testing.assert_allclose(start - model.qkv.weight.numpy(), expected[1], rtol=1e-4, atol=1e-6)
    lines = str(step.explain(check=False, level=2)).splitlines()
    for name in ("attention", "attention_grad"):
        assert any(line.startswith(f"{name} of f32[4, 4, 1, 40, 4] by blocks (") for line in lines)


def test_transforms_and_second_derivatives():
    flow.manual_seed(0)
    q, k, v = (flow.randn(2, 3, 20, 4) for _ in range(3))

    def total(q):
        return F.scaled_dot_product_attention(q, k[0], v[0], is_causal=True).square().sum()

    def slopes(implementation):
        with attention_by(implementation):
            x = q[0].clone().requires_grad_()
            (first,) = flow.autograd.grad(total(x), x, create_graph=True)
            (second,) = flow.autograd.grad(first.square().sum(), x)
            each = flow.func.vmap(flow.func.grad(total))(q)
        return first, second, each

    for x, y in zip(slopes("kernel"), slopes("plain"), strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-4, atol=1e-4)


def test_autocast():
    q, k, v = (flow.randn(2, 3, 40, 8) for _ in range(3))
    with flow.autocast("cpu", dtype=flow.bfloat16):
        out = F.scaled_dot_product_attention(q, k, v)
    assert out.dtype == flow.bfloat16
    np.testing.assert_allclose(out.float().numpy(), F.scaled_dot_product_attention(q, k, v).numpy(), atol=3e-2)


def test_arguments_of_tensors():
    q = flow.randn(2, 3, 8, 4)
    ids = flow.tensor([[0, 0, 0, 1, 1, 1, 1, 2], [3, 3, 3, 3, 4, 4, 4, 4]])
    one = F.scaled_dot_product_attention(q, q, q, segment_ids=ids, is_causal=True)
    mask = (ids[:, None, :, None] == ids[:, None, None, :]) & flow.ones(8, 8).tril().bool()
    same = F.scaled_dot_product_attention(q, q, q, mask)
    np.testing.assert_allclose(one.numpy(), same.numpy(), atol=1e-6)
    pair = F.scaled_dot_product_attention(q, q, q, segment_ids=[ids, ids], window_size=[None, 0])
    np.testing.assert_array_equal(pair.numpy(), one.numpy())
    with flow.autocast("cpu", dtype=flow.bfloat16):
        assert F.scaled_dot_product_attention(q, q, q, segment_ids=ids, soft_cap=5).dtype == flow.bfloat16
    with pytest.raises(TypeError, match="takes from 3 to 8 positional|positional argument"):
        F.scaled_dot_product_attention(q, q, q, None, 0.0, True, None, False, (1, 0))
    with pytest.raises(RuntimeError, match="without the dim of the heads"):
        F.scaled_dot_product_attention(q, q, q, segment_ids=ids[:, :4])
    with pytest.raises(ValueError, match=r"a window is \(left, right\)"):
        F.scaled_dot_product_attention(q, q, q, window_size=(-1, 0))


def test_dropout_is_the_same_whatever_is_asked_for():
    q, k, v = (flow.randn(2, 3, 40, 8) for _ in range(3))

    def dropped(implementation):
        flow.manual_seed(1)
        with attention_by(implementation):
            return F.scaled_dot_product_attention(q, k, v, dropout_p=0.4).numpy()

    np.testing.assert_array_equal(dropped("kernel"), dropped("plain"))


@pytest.mark.parametrize(
    ("backends", "expected"),
    [
        (SDPBackend.MATH, 0),
        (SDPBackend.FLASH_ATTENTION, 1),
        ([SDPBackend.EFFICIENT_ATTENTION], 1),
        (SDPBackend.CUDNN_ATTENTION, 1),
        ([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH], 0),
    ],
)
def test_sdpa_kernel(backends, expected, monkeypatch):
    monkeypatch.setattr(attention, "LONG", 10**6)
    x = flow.randn(1, 2, 36, 8)

    def text():
        with sdpa_kernel(backends):
            return str(flow.explain(lambda x: F.scaled_dot_product_attention(x, x, x), x.to_global(where, [B])))

    where = flow.placement("cpu", PLACES["4"])
    assert ("dot_general" not in text()) == bool(expected)
