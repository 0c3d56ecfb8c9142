"""Convolutions against torch: 1 to 3 dims, stride, padding, dilation, groups, transposed, without batch."""

import jax
import numpy as np
import pytest
import torch.nn.functional as tf

from sbpjax._core.ops.conv import conv as cv
from sbpjax.errors import OpError, OpValueError
from tests.ops.checker import BF16, F, case, run

CONV_TOLERANCE = 2e-5  # sums of up to 200 float32 products in another order


def both(name, *inputs, **kw):
    return case(getattr(cv, name), getattr(tf, name), *inputs, tol=kw.pop("tol", CONV_TOLERANCE), **kw)


def even_same(x, weight, padding):
    """Torch's "same" for a kernel of 4 puts the odd element behind, and warns; this is the same without the warning."""
    return tf.conv2d(tf.pad(x, (1, 2, 1, 2)), weight)


OPTIONS = [
    {},
    {"stride": 2},
    {"padding": 1},
    {"dilation": 2},
    {"padding": "same"},
    {"padding": "valid"},
    {"stride": 3, "padding": 2, "dilation": 2},
]
CASES = [both("conv1d", F(2, 4, 9), F(6, 4, 3), F(6), **o) for o in OPTIONS]
CASES += [
    both("conv2d", F(2, 4, 9, 8), F(6, 4, 3, 3 if "same" in o.values() else 2), b, **o)
    for o in OPTIONS
    for b in (None, F(6))
]
CASES += [both("conv2d", F(2, 4, 7, 7), F(6, 4 // g, 3, 3), F(6), groups=g) for g in (1, 2)] + [
    both("conv2d", F(2, 4, 7, 7), F(8, 1, 3, 3), groups=4, padding=1)
]
CASES += [
    both("conv2d", F(2, 3, 7, 8), F(5, 3, 3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    case(cv.conv2d, even_same, F(2, 3, 7, 8), F(5, 3, 4, 4), padding="same", tol=CONV_TOLERANCE),
]
CASES += [
    both("conv3d", F(2, 2, 5, 4, 6), F(3, 2, 2, 3, 2), F(3), **o)
    for o in ({}, {"stride": 2, "padding": 1}, {"dilation": (2, 1, 1)})
]
CASES += [
    both("conv1d", F(4, 9), F(6, 4, 3)),
    both("conv2d", F(3, 7, 8), F(5, 3, 3, 2), F(5)),
    both("conv2d", F(0, 3, 5, 5), F(2, 3, 3, 3)),
]
CASES += [
    both("conv2d", F(2, 3, 5, 5, dtype=t), F(2, 3, 3, 3, dtype=t), tol=2e-2 if t is BF16 else 1e-12)
    for t in (BF16, np.float64)
]
TINY = [  # more elements in the kernel than in the image, or than in the output
    both("conv2d", F(2, 4, 2, 2), F(6, 4, 3, 3), F(6), padding=1),
    both("conv2d", F(2, 4, 4, 4), F(6, 4, 3, 3), stride=2, padding=1),
    both("conv2d", F(2, 4, 5, 3), F(6, 4, 5, 3), F(6)),
    both("conv2d", F(2, 4, 2, 3), F(6, 4, 3, 5), stride=(2, 1), padding=(2, 3)),
    both("conv2d", F(4, 2, 2), F(6, 4, 3, 3), F(6), padding=1),
    both("conv2d", F(0, 4, 2, 2), F(6, 4, 3, 3), padding=1),
    both("conv1d", F(2, 4, 3), F(6, 4, 5), F(6), padding=2),
    both("conv3d", F(2, 3, 2, 1, 2), F(4, 3, 3, 2, 2), padding=1),
    both("conv2d", F(2, 4, 2, 2), F(6, 2, 3, 3), groups=2, padding=1),
    both("conv2d", F(2, 3, 2, 2, dtype=BF16), F(2, 3, 3, 3, dtype=BF16), padding=1, tol=2e-2),
]
CASES += TINY
TRANSPOSED = [
    {},
    {"stride": 2},
    {"padding": 1},
    {"stride": 2, "output_padding": 1},
    {"dilation": 2},
    {"stride": 3, "padding": 2, "dilation": 2, "output_padding": 2},
]
CASES += [both("conv_transpose1d", F(2, 4, 5), F(4, 3, 3), F(3), **o) for o in TRANSPOSED]
CASES += [both("conv_transpose2d", F(2, 4, 5, 4), F(4, 3, 3, 2), b, **o) for o in TRANSPOSED for b in (None, F(3))]
CASES += [
    both("conv_transpose2d", F(2, 4, 5, 4), F(4, 3, 3, 2), F(6), groups=2, stride=2),
    both("conv_transpose2d", F(4, 5, 4), F(4, 3, 3, 2), stride=(2, 1), padding=(0, 1)),
]
CASES += [
    both("conv_transpose3d", F(2, 2, 3, 3, 3), F(2, 3, 2, 2, 3), F(3), **o) for o in ({}, {"stride": 2, "padding": 1})
]

test_against_torch = run(CASES)


@pytest.mark.parametrize(
    "size, stride, name", [(2, 1, "dot_general"), (4, 2, "dot_general"), (4, 1, "conv_general_dilated")]
)
def test_kernels_larger_than_the_image_are_products_in_both_directions(size, stride, name):
    def gradients(x, weight):
        out, back = jax.vjp(lambda x, w: cv.conv2d(x, w, stride=stride, padding=1), x, weight)
        return back(out)

    closed = jax.make_jaxpr(gradients)(F(2, 4, size, size), F(6, 4, 3, 3))
    found = [e.primitive.name for e in closed.jaxpr.eqns if e.primitive.name in ("dot_general", "conv_general_dilated")]
    assert found == [name] * 3


def test_errors():
    with pytest.raises(OpError, match="channels"):
        cv.conv2d(F(2, 3, 5, 5), F(2, 4, 3, 3))
    with pytest.raises(OpValueError, match="'same'"):
        cv.conv2d(F(2, 3, 5, 5), F(2, 3, 3, 3), padding="same", stride=2)
    with pytest.raises(OpError, match="covers the kernel"):
        cv.conv1d(F(2, 3, 2), F(2, 3, 3))
    with pytest.raises(OpError, match="4 dims"):
        cv.conv2d(F(2, 3, 5), F(2, 3, 3))
    with pytest.raises(OpValueError, match="output padding"):
        cv.conv_transpose1d(F(2, 3, 5), F(3, 2, 3), output_padding=1)
    with pytest.raises(OpValueError, match="2 numbers"):
        cv.conv2d(F(2, 3, 5, 5), F(2, 3, 3, 3), stride=(1, 2, 3))
