"""`assert_close` beside PyTorch's: the same verdicts, and messages that begin alike."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.testing import assert_close

NAN, INF = float("nan"), float("inf")
CASES = {
    "equal": (lambda T: (T.ones(3), T.ones(3)), {}),
    "within": (lambda T: (T.ones(3), T.ones(3) + 1e-6), {}),
    "beyond": (lambda T: (T.ones(3), T.ones(3) + 1e-3), {}),
    "given": (lambda T: (T.ones(3), T.ones(3) + 1e-3), {"rtol": 0.0, "atol": 1e-2}),
    "half": (lambda T: (T.ones(3), (T.ones(3) + 1e-2).to(T.bfloat16)), {"check_dtype": False}),
    "dtype": (lambda T: (T.ones(3), T.ones(3, dtype=T.float64)), {}),
    "shape": (lambda T: (T.ones(3), T.ones(1, 3)), {}),
    "nan": (lambda T: (T.tensor([NAN, 1.0]), T.tensor([NAN, 1.0])), {}),
    "equal nan": (lambda T: (T.tensor([NAN, INF]), T.tensor([NAN, INF])), {"equal_nan": True}),
    "infinite": (lambda T: (T.tensor([INF, 1.0]), T.tensor([-INF, 1.0])), {}),
    "integers": (lambda T: (T.tensor([1, 2]), T.tensor([1, 3])), {}),
    "bools": (lambda T: (T.tensor([True]), T.tensor([True])), {}),
    "0-d": (lambda T: (T.tensor(1.0), T.tensor(1.1)), {}),
    "numbers": (lambda T: (1.0, 1.0 + 1e-9), {}),
    "numbers apart": (lambda T: (1, 2), {}),
    "sequence": (lambda T: ([T.ones(2), 3.0], (T.ones(2), 3.0)), {}),
    "sequence apart": (lambda T: ([T.ones(2), 3.0], [T.ones(2), 4.0]), {}),
    "lengths": (lambda T: ([1.0], [1.0, 2.0]), {}),
    "mapping": (lambda T: ({"a": T.ones(2)}, {"a": T.ones(2)}), {}),
    "keys": (lambda T: ({"a": 1.0}, {"b": 1.0}), {}),
    "stride": (lambda T: (T.ones(2, 3).t(), T.ones(3, 2)), {"check_stride": True}),
    "arrays": (lambda T: (np.ones(2), np.ones(2)), {}),
    "complex": (lambda T: (T.tensor([1 + 1j]), T.tensor([1 + 2j])), {}),
    "one tolerance": (lambda T: (1.0, 1.0), {"rtol": 0.1}),
}


def verdict(check, values, options):
    try:
        check(*values, **options)
    except (AssertionError, ValueError) as error:
        return (AssertionError if isinstance(error, AssertionError) else ValueError), str(error)
    return None, ""


@pytest.mark.parametrize("case", CASES)
def test_verdicts_are_pytorchs(case):
    make, options = CASES[case]
    got, text = verdict(assert_close, make(flow), options)
    want, theirs = verdict(torch.testing.assert_close, make(torch), options)
    assert got is want, (text, theirs)
    if want is AssertionError and theirs.startswith(("The values", "Tensor-likes")):
        assert text.split(".")[0].split("!")[0].split(":")[0][:30] == theirs.split("!")[0][:30]


def test_global_tensors_and_messages():
    place = flow.placement("cpu", [0, 1])
    x = flow.arange(6.0).to_global(place, "S0")
    assert_close(x, flow.arange(6.0).to_global(place, "B"))
    with pytest.raises(AssertionError, match="'device' do not match"):
        assert_close(x, flow.arange(6.0))
    assert_close(x, flow.arange(6.0), check_device=False)
    with pytest.raises(AssertionError, match="1 / 2.*\n.*absolute difference: 2.0 at index \\(1,\\)"):
        assert_close(flow.tensor([1.0, 2.0]), flow.tensor([1.0, 4.0]))
    with pytest.raises(AssertionError, match="^mine: Scalars are not close"):
        assert_close(1.0, 2.0, msg=lambda text: f"mine: {text}")
    with pytest.raises(AssertionError, match=r"at \['a'\]\[1\]"):
        assert_close({"a": [1.0, 2.0]}, {"a": [1.0, 3.0]})
