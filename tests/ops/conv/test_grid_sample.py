"""Affine grids, sampling and deformable convolution, against torch and against plain convolution."""

import functools

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.conv import grid_sample as gs
from sbpjax._core.programs.normalise import normalise
from sbpjax.errors import OpError, OpValueError
from tests.ops.checker import F, case, run


def both(name, *inputs, **kw):
    return case(getattr(gs, name), getattr(tf, name), *inputs, **kw)


CASES = [both("affine_grid", F(2, 2, 3), size=s, align_corners=a) for s in ((2, 3, 4, 5),) for a in (True, False)]
CASES += [both("affine_grid", F(2, 3, 4), size=(2, 1, 2, 3, 4), align_corners=a) for a in (True, False)]
X, GRID = F(2, 3, 5, 6), F(2, 4, 3, 2, low=-1.7, high=1.7)
X3, GRID3 = F(2, 2, 3, 4, 5), F(2, 2, 3, 2, 3, low=-1.5, high=1.5)
SMOOTH = 1e-5  # weights are differences of places near 5, so their last bits count more
CUBIC = 3e-5  # and the derivative of the cubic ones adds terms that cancel
CASES += [
    both("grid_sample", X, GRID, mode=m, padding_mode=p, align_corners=a, tol=CUBIC if m == "bicubic" else SMOOTH)
    for m in ("bilinear", "nearest", "bicubic")
    for p, a in (("zeros", False), ("border", True), ("reflection", False), ("reflection", True))
]
CASES += [
    both("grid_sample", X3, GRID3, mode=m, padding_mode=p, align_corners=a, tol=SMOOTH)
    for m, p, a in (
        ("bilinear", "zeros", False),
        ("bilinear", "reflection", True),
        ("nearest", "border", False),
        ("bilinear", "border", True),
    )
]


def _deform(x, offset, weight, bias, mask, stride, padding, dilation):
    """Say the same with torch's own sampling, one kernel cell after the other."""
    n, _, h, w = x.shape
    out, per, kh, kw = weight.shape
    ho, wo = offset.shape[2:]
    groups = offset.shape[1] // (2 * kh * kw)
    shift = offset.reshape(n, groups, kh * kw, 2, ho, wo)
    columns = []
    for k in range(kh * kw):
        i, j = divmod(k, kw)
        rows = torch.arange(ho, dtype=x.dtype)[:, None] * stride - padding + i * dilation
        cols = torch.arange(wo, dtype=x.dtype)[None] * stride - padding + j * dilation
        reads = []
        for g, part in enumerate(x.chunk(groups, 1)):
            place_y, place_x = rows + shift[:, g, k, 0], cols + shift[:, g, k, 1]
            grid = torch.stack([place_x * 2 / (w - 1) - 1, place_y * 2 / (h - 1) - 1], -1)
            read = tf.grid_sample(part, grid, align_corners=True)
            if mask is not None:
                read = read * mask.reshape(n, groups, kh * kw, ho, wo)[:, g, k, None]
            reads.append(read)
        columns.append(torch.cat(reads, 1))
    columns = torch.stack(columns, 2)  # (N, C, cells, Ho, Wo)
    parts = [
        torch.einsum("nckhw,ock->nohw", c, w.reshape(w.shape[0], per, -1))
        for c, w in zip(columns.split(per, 1), weight.chunk(x.shape[1] // per))
    ]
    result = torch.cat(parts, 1)
    return result if bias is None else result + bias[:, None, None]


OPTIONS = {"stride": 1, "padding": 1, "dilation": 1}
CASES += [
    case(gs.deform_conv2d, _deform, F(2, 4, 5, 6), F(2, 18 * g, 5, 6), F(4, c, 3, 3), b, m, tol=1e-5, **OPTIONS)
    for g, c, b, m in ((1, 4, F(4), None), (2, 2, None, F(2, 18, 5, 6, low=0, high=1)))
]
CASES += [
    case(
        gs.deform_conv2d, _deform, F(1, 2, 7, 7), F(1, 8, 3, 3), F(3, 2, 2, 2), F(3), None,
        stride=2, padding=0, dilation=2, tol=1e-5,
    )
]  # fmt: skip

test_against_torch = run(CASES)


def test_without_offsets_it_is_a_convolution():
    x, w = F(2, 4, 6, 6), F(3, 2, 3, 3)
    got = gs.deform_conv2d(x, np.zeros((2, 18, 6, 6), np.float32), np.concatenate([w, w[:1]]), padding=1)
    want = tf.conv2d(torch.from_numpy(x), torch.from_numpy(np.concatenate([w, w[:1]])), padding=1, groups=2)
    np.testing.assert_allclose(np.asarray(got), want.numpy(), atol=2e-5)


def test_taps_of_a_dim_are_made_once():
    # 16 reads share 8 taps: made per read they were 833 equations, which take a minute to plan with their backward.
    cubic = functools.partial(gs.grid_sample, mode="bicubic", padding_mode="border", align_corners=True)
    assert len(normalise(jax.make_jaxpr(cubic)(X, GRID)).eqns) < 450


def test_errors():
    with pytest.raises(OpValueError, match="mode is"):
        gs.grid_sample(X, GRID, mode="linear")
    with pytest.raises(OpError, match="same dims and batch"):
        gs.grid_sample(X, GRID3)
    with pytest.raises(OpValueError, match="affine matrices"):
        gs.affine_grid(F(2, 2, 2), size=(2, 3, 4, 5))
