"""Interpolation, patches and pixel shuffles against torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.conv import resize as rs
from sbpjax.errors import OpError, OpValueError
from tests.ops.checker import BF16, F, case, run


def both(name, *inputs, **kw):
    return case(getattr(rs, name), getattr(tf, name), *inputs, **kw)


X1, X2, X3 = F(2, 3, 5), F(2, 3, 5, 4), F(1, 2, 3, 4, 3)
NEAREST = ("nearest", "nearest-exact")
CASES = [
    both("interpolate", x, mode=m, size=s)
    for m in NEAREST
    for x, s in ((X1, 7), (X1, 10), (X2, (3, 9)), (X3, (5, 2, 6)))
]
CASES += [both("interpolate", X2, mode=m, scale_factor=s) for m in NEAREST for s in (2.0, (2.0, 3.0), 0.5, 1.7)] + [
    both("interpolate", X2, scale_factor=2)
]
LINEAR = [("linear", X1, 8), ("bilinear", X2, (8, 3)), ("trilinear", X3, (4, 4, 5)), ("bicubic", X2, (7, 9))]
RESIZE_TOLERANCE = 2e-5  # torch computes the places in float32
CASES += [
    both("interpolate", x, mode=m, size=s, align_corners=a, tol=RESIZE_TOLERANCE)
    for m, x, s in LINEAR
    for a in (False, True)
]
CASES += [both("interpolate", X2, mode="bilinear", scale_factor=s, tol=RESIZE_TOLERANCE) for s in (2.0, 1.7, 0.6)]
CASES += [both("interpolate", X2, mode="bilinear", scale_factor=1.7, recompute_scale_factor=True, tol=RESIZE_TOLERANCE)]
CASES += [
    both("interpolate", X2, mode="bicubic", scale_factor=2.0, align_corners=a, tol=RESIZE_TOLERANCE)
    for a in (False, True)
]
CASES += [both("interpolate", X2, mode="area", size=s) for s in ((2, 2), (3, 4))] + [
    both("interpolate", X2, mode="bilinear", size=(1, 1), align_corners=True)
]
CASES += [both("interpolate", X2.astype(BF16), mode="bilinear", scale_factor=2.0)]
PATCHES = [
    {"kernel_size": 2},
    {"kernel_size": (2, 3), "stride": 2, "padding": 1},
    {"kernel_size": 2, "dilation": 2},
    {"kernel_size": 3, "stride": (2, 1), "padding": (0, 1)},
]
CASES += [both("unfold", x, **o) for x in (F(2, 3, 5, 6), F(3, 5, 6)) for o in PATCHES]


def columns(o):
    return rs.unfold(np.zeros((2, 3, 5, 6), np.float32), **o).shape


CASES += [both("fold", F(*columns(o)), output_size=(5, 6), **o) for o in PATCHES] + [
    both("fold", F(*columns(PATCHES[0])[1:]), output_size=(5, 6), kernel_size=2)
]
MANY_CELLS = [  # read by gathers
    {"kernel_size": (17, 20)},
    {"kernel_size": (17, 20), "dilation": (2, 1), "padding": (3, 2), "stride": (2, 3)},
]
CASES += [both("unfold", F(2, 1, 36, 25), **o) for o in MANY_CELLS]
CASES += [
    both("fold", F(*tf.unfold(torch.zeros(2, 1, 36, 25), **o).shape), output_size=(36, 25), **o) for o in MANY_CELLS
]
CASES += [both("pixel_shuffle", x, upscale_factor=2) for x in (F(2, 8, 3, 4), F(4, 3, 4))] + [
    both("pixel_unshuffle", F(2, 3, 4, 6), downscale_factor=2)
]
CASES += [both("channel_shuffle", F(2, 6, 3, 2), groups=3)]

test_against_torch = run(CASES)


def test_errors():
    with pytest.raises(OpValueError, match="fits"):
        rs.interpolate(X1, mode="bilinear", size=3)
    with pytest.raises(OpValueError, match="either size or scale_factor"):
        rs.interpolate(X1)
    with pytest.raises(OpError, match="must be divisible by .*: 4 here"):
        rs.pixel_shuffle(F(1, 3, 2, 2), upscale_factor=2)
    with pytest.raises(OpError, match="patch fits"):
        rs.unfold(F(1, 1, 2, 2), kernel_size=3)
    with pytest.raises(OpError, match="divisible by groups: 6 channels and 4 groups"):
        rs.channel_shuffle(F(2, 6, 3, 2), groups=4)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("size", [(4, 5), (18, 22), (7, 13)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_in_bytes_are_equal(mode, size, antialias):
    x = np.random.default_rng(0).integers(0, 256, (1, 3, 9, 11)).astype(np.uint8)
    options = {"size": size, "mode": mode, "antialias": antialias}
    want = tf.interpolate(torch.tensor(x), **options).numpy().astype(int)
    got = np.asarray(rs.interpolate(x, **options))
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, want)
