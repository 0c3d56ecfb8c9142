"""OneFlow's op-level functions against PyTorch's equivalents."""

import functools

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import errors
from tests.support import compare

_RNG = np.random.default_rng(4)
A = _RNG.normal(size=(5, 4)).astype(np.float32)
W = _RNG.normal(size=(5, 4)).astype(np.float32)
X = _RNG.normal(size=(3, 4, 2)).astype(np.float32)
V = _RNG.normal(size=(4,)).astype(np.float32)
I = np.array([3, 0, -1], np.int64)
RTOL = 1e-5
close = functools.partial(compare.close, rtol=RTOL, atol=RTOL)


def test_matmul():
    a, w = flow.tensor(A), flow.tensor(W)
    close(flow._C.matmul(a, w, transpose_b=True), A @ W.T)
    close(flow._C.matmul(a, w, transpose_a=True, alpha=0.5), 0.5 * (A.T @ W))
    assert not flow._C.matmul(a, w, transpose_b=True).requires_grad


def test_add():
    a, w = flow.tensor(A), flow.tensor(W)
    close(flow._C.add(a, w, alpha=2), A + 2 * W)
    close(flow._C.add([a, w, a]), A + W + A)
    x = a.clone()
    assert flow._C.add(x, w, inplace=True) is x
    close(x, A + W)
    assert flow._C.add([x, w, w], inplace=True) is x
    close(x, A + 3 * W)


def test_bias_add_and_gather():
    close(flow._C.bias_add(flow.tensor(X), flow.tensor(V), axis=1), X + V[:, None])
    close(flow._C.bias_add(flow.tensor(A), flow.tensor(V), axis=-1), A + V)
    close(flow._C.gather(flow.tensor(A), flow.tensor(I), axis=1), A[:, I])
    close(flow._C.gather(flow.tensor(X), flow.tensor(I.reshape(3, 1) % 3), axis=0), X[I.reshape(3, 1) % 3])


def test_in_top_k():
    targets = np.array([0, 1, 2, 3, 0])
    want = [t in set(np.argsort(-row)[:2]) for t, row in zip(targets, A, strict=True)]
    assert flow._C.in_top_k(flow.tensor(targets), flow.tensor(A), 2).tolist() == want


@pytest.mark.parametrize("training", [False, True])
def test_normalization(training):
    mean, variance = np.zeros(4, np.float32), np.ones(4, np.float32)
    theirs = [torch.tensor(v) for v in (mean, variance)]
    ours = [flow.tensor(v) for v in (mean, variance)]
    want = torch.nn.functional.batch_norm(torch.tensor(X), *theirs, torch.tensor(V), torch.tensor(V), training)
    got = flow._C.normalization(flow.tensor(X), *ours, flow.tensor(V), flow.tensor(V), is_training=training)
    close(got, want)
    for mine, other in zip(ours, theirs, strict=True):
        close(mine, other)


def test_sparse_softmax_cross_entropy():
    labels = np.array([0, 1, 2, 3, 0])
    want = torch.nn.functional.cross_entropy(torch.tensor(A), torch.tensor(labels), reduction="none")
    close(flow._C.sparse_softmax_cross_entropy(flow.tensor(A), flow.tensor(labels)), want)
    with pytest.raises(errors.OpError, match="depth is the number of classes"):
        flow._C.sparse_softmax_cross_entropy(flow.tensor(A), flow.tensor(labels), depth=7)


def test_broadcast_like():
    like = flow.zeros(3, 4, 2)
    close(flow.broadcast_like(flow.tensor(V), flow.zeros(5, 4)), np.broadcast_to(V, (5, 4)))
    close(flow.broadcast_like(flow.tensor(V), like, (0, 2)), np.broadcast_to(V[None, :, None], (3, 4, 2)))


def test_identity_keeps_layout_and_tape():
    where = flow.placement("cpu", [0, 1])
    x = flow.tensor(A).to_global(where, flow.sbp.split(0)).requires_grad_()
    y = flow._C.identity(x)
    assert y.sbp == x.sbp and y.grad_fn is not None
    y.sum().backward()
    close(x.grad, np.ones_like(A))


def _attend(q, k, v, mask=None):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)


def test_attention_by_layout():
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(2, 5, 3 * 4 * 6)).astype(np.float32))  # (B, M, H 3 K)
    q, k, v = x.view(2, 5, 4, 3, 6).permute(3, 0, 2, 1, 4)
    call = flow._C.fused_multi_head_attention_inference_v2
    ours = flow.tensor(x.numpy())
    close(call(query=ours, query_layout="BM(H3K)", query_head_size=6), _attend(q, k, v).numpy())
    parts = {n: flow.tensor(z.contiguous().numpy()) for n, z in (("query", q), ("key", k), ("value", v))}
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    got = call(**parts, query_layout="BHMK", attn_mask_type="causal_from_top_left")
    close(got, _attend(q, k, v, causal).numpy())
    lengths = flow.tensor([5, 3])
    some = (torch.arange(5)[None] < torch.tensor([5, 3])[:, None])[:, None, None]
    got = call(**parts, query_layout="BHMK", key_seq_len=lengths, output_layout="MB(HK)")
    close(got, _attend(q, k, v, some).transpose(0, 1).numpy())
    with pytest.raises(ValueError, match="layout"):
        call(query=ours, query_layout="B(HK)M")


def test_dropout_of_fused_functions():
    x, mask = flow.randn(2, 3, 8, 8), flow.ones(2, 1, 8, 8, dtype=flow.bool)
    flow.manual_seed(0)
    y, weights = flow._C.fused_scale_mask_softmax_dropout(x, mask, scale=0.5, p=0.25)
    kept = y.numpy() != 0
    assert 0.6 < kept.mean() < 0.9
    np.testing.assert_allclose(y.numpy()[kept], (weights.numpy() / 0.75)[kept], rtol=RTOL)
    y, weights = flow._C.fused_scale_tril_softmax_mask_scale(x, p=0.0, diagonal=0, tril_scale_value=1.0)
    close(y, weights.numpy())
    close(flow._C.fused_bias_add_dropout(x, flow.ones(8), p=0.0, axis=3), x.numpy() + 1)


def test_plain_names():
    x = flow.tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    close(flow._C.transpose(x, (1, 0)), x.numpy().T)
    close(flow._C.transpose(x, perm=(1, 0)), x.numpy().T)
    close(flow._C.layer_norm(x, 1, 1, 1e-5), torch.nn.functional.layer_norm(torch.tensor(x.numpy()), (4,)).numpy())
    scale, shift = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    want = torch.nn.functional.layer_norm(torch.tensor(x.numpy()), (4,), torch.tensor(scale), torch.tensor(shift))
    close(flow._C.layer_norm_affine(x, flow.tensor(scale), flow.tensor(shift), 1, 1, 1e-5), want.numpy())
    close(flow._C.rms_norm(x, flow.ones(4), (4,)), x.numpy() / np.sqrt((x.numpy() ** 2).mean(1, keepdims=True) + 1e-6))
    close(flow._C.l1_loss(x, x + 1), 1.0)
    logits, labels = torch.tensor(x.numpy()), torch.tensor([0, 1, -1])
    want = torch.nn.functional.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")
    close(flow._C.cross_entropy(x, flow.tensor([0, 1, -1]), None, -1, "sum"), want.numpy())
    placement = flow.placement("cpu", [0, 1])
    found = flow._C.global_arange(4, placement=placement, sbp=flow.sbp.split(0))
    assert found.sbp == (flow.sbp.split(0),) and found.numpy().tolist() == [0, 1, 2, 3]
    with flow.autocast("cpu"):
        assert flow._C.amp_white_identity(x).dtype == flow.bfloat16
        assert flow._C.amp_black_identity(x.bfloat16()).dtype == flow.float32
    for name in "cast relu reshape pad quick_gelu fused_fast_gelu_mul concat matmul softmax conv2d".split():
        assert callable(getattr(flow._C, name))
    with pytest.raises(AttributeError):
        flow._C.no_such_name  # noqa: B018


def test_kernels_by_their_own_names():
    c, f = flow._C, torch.nn.functional
    x, w = flow.tensor(A), torch.tensor(A)
    close(c.batch_matmul(x[None], x[None], transpose_b=True, alpha=2.0), 2 * (A @ A.T)[None])
    assert c.arg_sort(x, "DESCENDING").tolist() == np.argsort(-A, -1).tolist()
    close(c.reduce_sum(x, [0], True), A.sum(0, keepdims=True))
    close(c.reduce_max(x, 1), A.max(1))
    close(c.reduce_prod(x, [0, 1]), A.prod())
    close(c.reduce_sum_like(x, flow.ones(4), [0]), A.sum(0))
    close(c.reciprocal_no_nan(flow.tensor([0.0, 2.0])), [0, 0.5])
    close(c.unsorted_segment_sum(x, flow.tensor([0, 2, 0, 2, 2]), 0, 3)[2], A[[1, 3, 4]].sum(0))
    close(c.fused_matmul_bias(x, x, flow.ones(5), flow.ones(5)), A @ A.T + 2)
    close(
        c.fused_mlp(x, [x, flow.ones(2, 5)], [flow.ones(5), flow.ones(2)], True),
        np.maximum(A @ A.T + 1, 0) @ np.ones((5, 2)) + 1,
    )
    close(c.fused_weighted_sum([x, x], [1.0, 2.0], 0.5), 1.5 * A)
    close(c.skip_layer_norm(x, bias=flow.ones(4), skip=x, alpha=2.0), f.layer_norm(w + 1 + 2 * w, (4,)).numpy())
    close(c.softmax_cross_entropy(x, x.softmax(-1)), -(w.softmax(-1) * w.log_softmax(-1)).sum(-1).numpy())
    close(
        c.sparse_cross_entropy(x.softmax(-1), flow.tensor([0, 1, 2, 3, 0]), 4),
        f.cross_entropy(w, torch.tensor([0, 1, 2, 3, 0]), reduction="none").numpy(),
    )
    close(c.roc_auc_score(flow.tensor([1, 0, 1, 0]), flow.tensor([0.9, 0.5, 0.5, 0.1])), [0.875])
    close(c.upsample_nearest_2d(x[None, None], 2.0, 2.0), f.interpolate(w[None, None], scale_factor=2.0).numpy())
    close(
        c.upsample_bilinear_2d(x[None, None], output_size=(3, 3)),
        f.interpolate(w[None, None], size=(3, 3), mode="bilinear").numpy(),
    )
    close(c.fused_get_intersection_area(*(flow.tensor([v]) for v in (0.0, 4.0, 2.0, 6.0, 0.0, 4.0, 1.0, 9.0))), [6.0])
    grads = [flow.tensor(A), flow.tensor(X)]
    norm = np.sqrt((A**2).sum() + (X**2).sum())
    close(c.fused_clip_grad(grads, 1.0, 2.0), norm)
    close(grads[0], A / norm)
    y = flow.ones(3, 3)
    assert c.tril_(y) is y and y.sum() == 6 and c.fft(y).dtype == flow.complex64
    assert c.trunc_divide(flow.tensor([-7]), 2).tolist() == [-3]
    assert flow.ones(3, 3).xavier_uniform_().abs().max() <= 1
