"""OneFlow's fused functions against the composition of PyTorch's that they stand for."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.attention import fused as fu
from sbpjax._core.ops.layers import boxes as rg
from sbpjax.errors import OpError, OpValueError
from tests.ops.checker import B, F, case, run

X = F(2, 3, 4, 4)
MASK = B(2, 1, 4, 4) | np.eye(4, dtype=bool)


def masked(x, mask, fill_value, scale):
    return torch.softmax(torch.where(mask, x * scale, torch.tensor(fill_value)), -1)


def twice(x, mask, fill_value, scale):
    return masked(x, mask, fill_value, scale), masked(x, mask, fill_value, scale)


def tril(x, diagonal, tril_scale_value, tril_fill_value):
    keep = torch.ones(x.shape, dtype=torch.bool).tril(diagonal)
    y = torch.softmax(torch.where(keep, x * tril_scale_value, torch.tensor(tril_fill_value)), -1)
    return y, y


def attention(x, head_size, alpha):
    t, b, width = x.shape
    q, k, v = x.view(t, b, width // (3 * head_size), 3 * head_size).permute(1, 2, 0, 3).chunk(3, -1)
    return alpha * q @ k.mT, v


FILL = {"fill_value": -10000.0, "scale": 0.5}
TRIL = {"diagonal": 0, "tril_scale_value": 0.25, "tril_fill_value": -10000.0}
CASES = [
    case(fu.bias_add_gelu, lambda x, b, axis: tf.gelu(x + b[:, None]), F(2, 3, 4), F(3), axis=1),
    case(fu.fast_gelu_mul, lambda x, y: tf.gelu(x, approximate="tanh") * y, F(2, 3), F(2, 3, seed=1)),
    case(fu.scale_mask_softmax, masked, X, MASK, **FILL),
    case(fu.scale_mask_softmax_dropout, twice, X, MASK, **FILL),
    case(fu.bias_add_scale_mask_softmax_dropout, lambda x, b, m, **k: twice(x + b, m, **k), X, F(4, 4), MASK, **FILL),
    case(fu.scale_tril_softmax_mask_scale, tril, X, **TRIL),
    case(fu.scale_tril, lambda x, diagonal, scale: x.tril(diagonal) * scale, X, diagonal=1, scale=0.5),
    case(fu.self_attention, attention, F(5, 2, 24), head_size=4, alpha=0.5),
    case(
        fu.glu,
        lambda x, w, b, activation: (x @ w.T + b)[:, :3] * tf.silu((x @ w.T + b)[:, 3:]),
        F(2, 4),
        F(6, 4),
        F(6),
        activation="silu",
    ),
    case(
        fu.glu,
        lambda x, w, b, v, c: (x @ w.T + b) * (x @ v.T + c),
        F(2, 4),
        F(6, 4),
        F(6),
        F(6, 4, seed=1),
        F(6, seed=1),
    ),
]


def sampled(x, rois, spatial_scale, pooled_h, pooled_w, sampling_ratio, aligned, most):
    """Sample every bin on its own, by `grid_sample` of one point."""
    shift = 0.5 if aligned else 0.0
    h, w = x.shape[2:]
    rows = []
    for number, *box in rois.tolist():
        left, top, right, bottom = (v * spatial_scale - shift for v in box)
        high, wide = bottom - top, right - left
        high, wide = (high, wide) if aligned else (max(high, 1.0), max(wide, 1.0))
        image = x[int(number) : int(number) + 1]
        ny = sampling_ratio if sampling_ratio > 0 else int(np.ceil(high / pooled_h))
        nx = sampling_ratio if sampling_ratio > 0 else int(np.ceil(wide / pooled_w))
        for i in range(pooled_h):
            for j in range(pooled_w):
                total = torch.zeros(x.shape[1])
                for a in range(ny):
                    for b in range(nx):
                        y = top + (i + (a + 0.5) / ny) * high / pooled_h
                        z = left + (j + (b + 0.5) / nx) * wide / pooled_w
                        if -1 <= y <= h and -1 <= z <= w:
                            y, z = min(max(y, 0), h - 1), min(max(z, 0), w - 1)
                            at = torch.tensor([[[[2 * z / (w - 1) - 1, 2 * y / (h - 1) - 1]]]])
                            total = total + tf.grid_sample(image, at, align_corners=True)[0, :, 0, 0]
                rows.append(total / max(ny * nx, 1))
    return torch.stack(rows).reshape(len(rois), pooled_h, pooled_w, -1).permute(0, 3, 1, 2)


ROIS = np.array([[0, 0.5, 1, 4.2, 5], [1, 2, 2, 7.5, 6.5], [1, -3, 0, 2, 9]], np.float32)
CASES += [
    case(
        rg.roi_align, sampled, F(2, 3, 6, 8), ROIS, const=(1,), tol=1e-4, spatial_scale=s, pooled_h=2, pooled_w=3,
        sampling_ratio=r, aligned=a, most=5,
    )
    for s, r, a in ((1.0, 2, False), (0.5, 2, True), (1.0, -1, False), (1.0, -1, True))
]  # fmt: skip

test_against_torch = run(CASES, per_op=2)


def test_boxes_that_overlap_better_ones_go():
    boxes = np.array([[0, 0, 4, 4], [1, 0, 5, 4], [6, 6, 8, 8], [0, 0, 4, 3.9]], np.float32)
    scores = np.array([0.5, 0.9, 0.1, 0.7], np.float32)
    assert rg.keep_boxes(boxes, scores, 0.5).tolist() == [1, 2]
    assert rg.keep_boxes(boxes, scores, 0.7).tolist() == [1, 3, 2]
    assert rg.keep_boxes(boxes[:0], scores[:0], 0.5).tolist() == []


def test_misuse():
    with pytest.raises(OpError, match="heads"):
        fu.self_attention(F(2, 2, 7), head_size=4, alpha=1.0)
    with pytest.raises(OpValueError, match="activation"):
        fu.glu(F(2, 4), F(6, 4), activation="cube")
    with pytest.raises(OpError, match="must match the size of tensor b"):
        fu.bias_add(F(2, 3), F(2), 1)
