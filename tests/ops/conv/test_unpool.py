"""Un-pooling, power and fractional pooling, against torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.conv import unpool as un
from sbpjax.errors import OpError, OpValueError
from tests.ops.checker import F, case, run


def pooled(n, shape, **options):
    """Return the values and places that torch's pooling gives."""
    x = torch.from_numpy(F(*shape))
    out, place = getattr(tf, f"max_pool{n}d")(x, return_indices=True, **options)
    return out.numpy(), place.numpy()


def both(name, n, *inputs, **kw):
    """Compare the general op with torch's of n dims, so that the sweep of layouts takes each family once."""
    return case(getattr(un, name), getattr(tf, f"{name}{n}d"), *inputs, ref_attrs=kw, n=n, **kw)


CASES = [
    both("max_unpool", 1, *pooled(1, (2, 3, 9), kernel_size=3), kernel_size=3),
    both("max_unpool", 2, *pooled(2, (2, 3, 6, 8), kernel_size=2), kernel_size=2),
    both("max_unpool", 2, *pooled(2, (3, 7, 8), kernel_size=2), kernel_size=2, output_size=(7, 8)),
    both("max_unpool", 3, *pooled(3, (2, 1, 4, 6, 4), kernel_size=2), kernel_size=2),
]
X1, X2, X3 = F(2, 3, 9), F(2, 3, 7, 8), F(1, 2, 5, 6, 4)
CASES += [
    both("lp_pool", 1, X1, norm_type=2.0, kernel_size=3, stride=2),
    both("lp_pool", 2, X2, norm_type=2.0, kernel_size=2),
    both("lp_pool", 2, np.abs(X2), norm_type=3.0, kernel_size=(3, 2), ceil_mode=True),
    both("lp_pool", 3, X3, norm_type=2.0, kernel_size=2),
]
U2, U3 = F(2, 3, 2, low=0, high=1), F(1, 2, 3, low=0, high=1)


def _fractional(name):
    def reference(x, samples, n, kernel_size, output_size, return_indices):
        return getattr(tf, f"{name}{n}d")(
            x, kernel_size, output_size=output_size, return_indices=return_indices, _random_samples=samples
        )

    return reference


CASES += [
    case(
        un.fractional_max_pool,
        _fractional("fractional_max_pool"),
        x,
        u,
        n=x.ndim - 2,
        kernel_size=k,
        output_size=o,
        return_indices=i,
        const=(1,),
    )
    for x, u, k, o in (
        (X2, U2, 2, (3, 4)),
        (X2, U2, (3, 2), (5, 1)),
        (X3, U3, 2, (3, 2, 2)),
    )
    for i in (True, False)
]

test_against_torch = run(CASES)


def test_names_of_the_dims():
    out, place = pooled(2, (2, 3, 6, 8), kernel_size=2)
    for name, args in (("max_unpool2d", (out, place, 2)), ("lp_pool2d", (X2, 2.0, 2))):
        general = getattr(un, name[:-2])
        tensors, rest = args[: -1 if name[0] == "m" else 1], args[-1 if name[0] == "m" else 1 :]
        np.testing.assert_array_equal(getattr(un, name)(*tensors, *rest), general(*tensors, 2, *rest))


def test_errors():
    x, place = pooled(2, (2, 3, 6, 8), kernel_size=2)
    with pytest.raises(OpValueError, match="each size is between"):
        un.max_unpool2d(x, place, kernel_size=2, output_size=(9, 9))
    with pytest.raises(OpError, match="same shape"):
        un.max_unpool2d(x, place[:1], kernel_size=2)
    with pytest.raises(OpError, match="at most the input"):
        un.fractional_max_pool2d(X2, U2, kernel_size=3, output_size=(7, 7))
