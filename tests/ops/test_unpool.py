"""Un-pooling, power and fractional pooling, against torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax.errors import OpError, OpValueError
from sbpjax.ops import unpool as un

from .checker import F, case, run


def pooled(n, shape, **options):
    """Return the values and places that torch's pooling gives."""
    x = torch.from_numpy(F(*shape))
    out, place = getattr(tf, f"max_pool{n}d")(x, return_indices=True, **options)
    return out.numpy(), place.numpy()


def both(name, *inputs, **kw):
    return case(getattr(un, name), getattr(tf, name), *inputs, **kw)


CASES = [
    both("max_unpool1d", *pooled(1, (2, 3, 9), kernel_size=3), kernel_size=3),
    both("max_unpool2d", *pooled(2, (2, 3, 6, 8), kernel_size=2), kernel_size=2),
    both("max_unpool2d", *pooled(2, (3, 7, 8), kernel_size=2), kernel_size=2, output_size=(7, 8)),
    both("max_unpool3d", *pooled(3, (2, 1, 4, 6, 4), kernel_size=2), kernel_size=2),
]
X1, X2, X3 = F(2, 3, 9), F(2, 3, 7, 8), F(1, 2, 5, 6, 4)
CASES += [
    both("lp_pool1d", X1, norm_type=2.0, kernel_size=3, stride=2),
    both("lp_pool2d", X2, norm_type=2.0, kernel_size=2),
    both("lp_pool2d", np.abs(X2), norm_type=3.0, kernel_size=(3, 2), ceil_mode=True),
    both("lp_pool3d", X3, norm_type=2.0, kernel_size=2),
]
U2, U3 = F(2, 3, 2, low=0, high=1), F(1, 2, 3, low=0, high=1)


def _fractional(name):
    def reference(x, samples, kernel_size, output_size, return_indices):
        return getattr(tf, name)(
            x, kernel_size, output_size=output_size, return_indices=return_indices, _random_samples=samples
        )

    return reference


CASES += [
    case(getattr(un, name), _fractional(name), x, u, kernel_size=k, output_size=o, return_indices=i, const=(1,))
    for name, x, u, k, o in (
        ("fractional_max_pool2d", X2, U2, 2, (3, 4)),
        ("fractional_max_pool2d", X2, U2, (3, 2), (5, 1)),
        ("fractional_max_pool3d", X3, U3, 2, (3, 2, 2)),
    )
    for i in (True, False)
]

test_against_torch = run(CASES)


def test_errors():
    x, place = pooled(2, (2, 3, 6, 8), kernel_size=2)
    with pytest.raises(OpValueError, match="lies between"):
        un.max_unpool2d(x, place, kernel_size=2, output_size=(9, 9))
    with pytest.raises(OpError, match="same shape"):
        un.max_unpool2d(x, place[:1], kernel_size=2)
    with pytest.raises(OpError, match="at most the input"):
        un.fractional_max_pool2d(X2, U2, kernel_size=3, output_size=(7, 7))
