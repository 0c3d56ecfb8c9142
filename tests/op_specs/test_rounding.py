"""The size of rounding errors: it shows where summands cancel, and at no jump."""

import numpy as np
import pytest

from tests.op_specs.engine import Different, Spec
from tests.op_specs.engine.against_torch import forward
from tests.op_specs.engine.outcome import run, torch
from tests.op_specs.engine.rounding import errors
from tests.support.generate import Input, call


def _errors(name: str, *args, **kwargs):
    made = call(*args, **kwargs)
    found = getattr(torch().package, name)

    def results(other):
        return run(torch(), found, other, grad=False).result

    return errors(results, made, results(made))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_summands_that_cancel_show(name):
    thousand = Input(np.array([1000.1, 0.2, -1000.3], name))
    unit = np.finfo(name).eps * 1000
    assert unit / 20 < _errors("mean", thousand) < 20 * unit
    deviation, mean = _errors("std_mean", thousand)
    assert 0 < mean < 20 * unit and 0 < deviation < 20 * unit


@pytest.mark.parametrize("name", ["floor", "round", "sign", "heaviside", "nan_to_num"])
def test_a_jump_is_no_rounding_error(name):
    x = Input(np.array([2.0, 0.5, 1.0, np.inf], np.float32))
    args = (x, Input(np.ones(4, np.float32), grad=False)) if name == "heaviside" else (x,)
    assert _errors(name, *args) < 1e-5


def test_a_value_is_as_wrong_as_its_summands_are_large():
    """The sum of a thousand and its negative: 1e-4 is rounding there, 0.1 is not."""

    def make(size):
        x = Input(np.array([1000.25, 3.0, -1000.0625], np.float32))
        return Spec("sum", lambda g: call(x), reference=lambda torch: lambda x: torch.sum(x) + size), call(x)

    assert forward(*make(1e-4))
    with pytest.raises(Different):
        forward(*make(0.1))
