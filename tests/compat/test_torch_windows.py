"""`torch.signal.windows` under the name torch, against PyTorch's."""

import functools
import importlib

import numpy as np
import pytest
import torch as real

from sbpjax import mock_torch

OPTIONS = {
    "exponential": [{}, {"tau": 2.5}, {"center": 1.0, "sym": False}],
    "gaussian": [{}, {"std": 0.7}],
    "kaiser": [{}, {"beta": 0.0}],
    "general_cosine": [{"a": [0.46, 0.23, 0.31]}, {"a": (1.0,)}],
    "general_hamming": [{}, {"alpha": 0.7}],
}
CASES = [(name, options) for name in real.signal.windows.__all__ for options in OPTIONS.get(name, [{}])]
WRONG = [
    ("hann", (-1,), {}),
    ("hann", (4,), {"dtype": "int64"}),
    ("exponential", (4,), {"tau": 0.0}),
    ("exponential", (4,), {"center": 1.0}),
    ("gaussian", (4,), {"std": -1.0}),
    ("kaiser", (4,), {"beta": -1.0}),
    ("general_cosine", (4,), {"a": []}),
    ("general_cosine", (4,), {"a": 0.5}),
]


def both(run):
    """Return what a function of the library returns for us and for PyTorch, which imports itself while it runs."""
    theirs = run(real)
    with mock_torch.enable():
        return run(importlib.import_module("torch")), theirs


def window(name, points, dtype, options, library):
    return getattr(library.signal.windows, name)(points, **options, dtype=getattr(library, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_window_equals_torch(name, options, dtype):
    for points in (0, 1, 2, 7, 8):
        for sym in (False,) if "center" in options else (True, False):
            ours, theirs = both(functools.partial(window, name, points, dtype, {**options, "sym": sym}))
            assert str(ours.dtype).endswith(dtype) and tuple(ours.shape) == tuple(theirs.shape)
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-6 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize(("name", "args", "options"), WRONG, ids=str)
def test_wrong_option_raises_torchs_class(name, args, options):
    def call(library):
        given = {k: getattr(library, v) if k == "dtype" else v for k, v in options.items()}
        with pytest.raises(Exception) as info:
            getattr(library.signal.windows, name)(*args, **given)
        return info.value

    ours, theirs = both(call)
    assert isinstance(ours, type(theirs))


def test_window_can_require_a_gradient():
    assert all(both(lambda t: t.signal.windows.hann(4, requires_grad=True).requires_grad))
