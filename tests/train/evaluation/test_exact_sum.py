"""Sums without rounding: those of fractions, in any order."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from sbpjax.train.evaluation import ExactSum


def test_it_is_the_sum_of_the_fractions():
    rng = np.random.default_rng(0)
    values = np.ldexp(rng.normal(size=4000), rng.integers(-1074, 900, 4000))
    values[:5] = [5e-324, -5e-324, 2.0**1020, 2.2e-308, 0.0]
    total = ExactSum()
    total.add(values)
    assert total.value() == sum(map(Fraction, values.tolist()))
    one, two = ExactSum(), ExactSum()
    for value in values[::-1]:
        one.add(value) if rng.random() < 0.5 else two.add([value])
    one.merge(ExactSum.decode(json.loads(json.dumps(two.encode()))))
    assert one.value() == total.value()
    assert float(total.value()) == math.fsum(values.tolist())


def test_many_of_one_exponent_do_not_overflow():
    total = ExactSum()
    total.add(np.full(1 << 20, math.nextafter(2.0, 1.0)))
    assert total.value() == (1 << 20) * Fraction(math.nextafter(2.0, 1.0))
    total.add(np.full(1 << 20, -math.nextafter(2.0, 1.0)))
    assert total.value() == 0 and total.mean(3) == 0.0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_means_are_rounded_once(dtype):
    values = np.random.default_rng(1).random((7, 11)).astype(dtype)
    total = ExactSum()
    total.add(values)
    assert total.mean(77) == float(sum(map(Fraction, values.reshape(-1).tolist())) / 77)
    assert math.isnan(ExactSum().mean(0))


def test_what_is_no_number():
    total = ExactSum()
    total.add([1.0, np.inf])
    assert total.value() == np.inf and total.mean(2) == np.inf
    total.add([-np.inf])
    assert math.isnan(ExactSum.decode(total.encode()).mean(3))
