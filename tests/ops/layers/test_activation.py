"""Activation functions against torch: kinks, infinities, NaN, bfloat16."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.layers import activation as ac
from sbpjax.errors import OpError, OpIndexError, OpTypeError
from tests.ops.checker import BF16, A, F, I, case, run

KINKS = A(-40, -6, -3, -1, -0.5, 0, 0.5, 1, 3, 6, 40, np.inf, -np.inf)
PLAIN = "relu relu6 selu silu mish gelu hardsigmoid hardswish softsign logsigmoid celu elu leaky_relu hardtanh softplus"
PLAIN = PLAIN.split() + ["hardshrink", "softshrink", "tanhshrink", "sigmoid"]
# At infinite x these have 0·inf or inf/inf in value or derivative, in both libraries, but not at the same places.
FINITE = {"silu", "mish", "gelu", "softsign", "tanhshrink", "hardswish", "hardsigmoid"}


def pair(name):
    return getattr(ac, name), getattr(tf, name)


# torch multiplies float64 gradients of hardsigmoid by a float32 constant; x - tanh(x) cancels near 0.
ROUGH = {"hardsigmoid": 1e-7, "tanhshrink": 1e-4}
CASES = [
    case(*pair(n), x, tol=ROUGH.get(n))
    for n in PLAIN
    for x in (F(3, 4), F(), F(0, 3), F(5, dtype=BF16), F(4, dtype=np.float64))
]
CASES += [case(*pair(n), KINKS[:-2] if n in FINITE else KINKS) for n in PLAIN]
CASES += [case(*pair(n), A(np.nan, 1.0), grad=False) for n in PLAIN]
CASES += [case(ac.relu, torch.relu, I(4, low=-3)), case(ac.hardtanh, tf.hardtanh, F(9), min_val=-0.2, max_val=0.7)]
CASES += [
    case(ac.threshold, tf.threshold, A(-1, 0.1, 0.5), threshold=0.1, value=20.0),
    case(ac.elu, tf.elu, F(9), alpha=0.3),
]
CASES += [case(ac.leaky_relu, tf.leaky_relu, KINKS, negative_slope=0.2), case(ac.celu, tf.celu, F(9), alpha=0.3)]
CASES += [
    case(ac.softplus, tf.softplus, F(9), beta=2.5, threshold=1.0),
    case(ac.gelu, tf.gelu, KINKS[:-2], tol=1e-5, approximate="tanh"),  # at -6 a unit of the tanh counts 14 times
]
CASES += [
    case(ac.gelu, tf.gelu, F(5, dtype=BF16), approximate="tanh"),
    case(ac.quick_gelu, lambda x: x * torch.sigmoid(1.702 * x), F(5)),
]
CASES += [
    case(ac.hardshrink, tf.hardshrink, F(9), lambd=0.2),
    case(ac.softshrink, tf.softshrink, A(-1, -0.2, 0, 0.2, 3), lambd=0.2),
]
CASES += [case(ac.glu, tf.glu, F(4, 6), dim=d) for d in (0, 1, -1)]
CASES += [
    case(ac.prelu, tf.prelu, x, w) for x, w in ((F(2, 3, 4), F(3)), (F(4), F(1)), (F(2, 3), A(0.2)), (F(), A(0.2)))
]

SOFT = "softmax log_softmax softmin".split()
CASES += [case(*pair(n), x, dim=d) for n in SOFT for x in (F(3, 4), F(3, 4, dtype=BF16)) for d in (0, 1, -1)]
CASES += [case(*pair(n), F(2, 3, 4), dim=1) for n in SOFT] + [case(*pair(n), F(), dim=0) for n in SOFT]
CASES += [case(*pair(n), F(0, 3), dim=d) for n in SOFT for d in (0, 1)] + [case(*pair(n), F(3, 0), dim=1) for n in SOFT]
CASES += [case(*pair(n), I(3), dim=0, dtype=np.dtype(np.float32)) for n in SOFT]
CASES += [case(*pair(n), np.stack([A(1e4, -1e4, 3), A(-np.inf, 0, 1), A(88, 89, 90)]), dim=1) for n in SOFT[:2]]
CASES += [case(*pair(n), np.full((1, 3), -np.inf, np.float32), dim=1, grad=False) for n in SOFT[:2]]

test_against_torch = run(CASES)


@pytest.mark.parametrize("name", ["softmax", "gelu", "silu", "leaky_relu"])
def test_integers_are_refused(name):
    with pytest.raises(OpTypeError, match="float"):
        getattr(ac, name)(I(3), **({"dim": 0} if name == "softmax" else {}))


def test_wrong_dims():
    with pytest.raises(OpIndexError, match=r"\[-2, 1\]"):
        ac.softmax(F(3, 4), dim=2)
    with pytest.raises(OpError, match="even"):
        ac.glu(F(3, 3), dim=0)
    with pytest.raises(OpError, match="must be 1 or 3"):
        ac.prelu(F(2, 3), F(2))
