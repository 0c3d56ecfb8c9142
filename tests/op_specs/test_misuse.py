"""Wrong calls end in an error of PyTorch's class, told in four parts."""

import subprocess
import sys

import pytest

import sbpjax
from sbpjax import errors
from tests.op_specs import misuse
from tests.op_specs.engine import SPECS
from tests.op_specs.engine.cases import draw
from tests.op_specs.engine.libraries import Local, Torch
from tests.op_specs.misuse_differences import listed

SHARES = 4
# The op and the change, of the kinds that were told by Python, NumPy or JAX, or in another class than PyTorch's.
CASES = [
    ("cummax", "text for dim"),
    ("cummin", "keyword"),
    ("gather", "text for 1"),
    ("chunk", "text for 1"),
    ("masked_scatter", "sizes for 1"),
    ("masked_scatter", "an object for 1"),
    ("addcmul", "text for value"),
    ("Tensor.unfold", "a float for 1"),
    ("Tensor.repeat", "text for 1"),
    ("nn.functional.relu6", "complex64 for 0"),
]


@pytest.mark.parametrize(("name", "what"), CASES)
def test_class_and_words(name, what):
    _, call = draw(SPECS[name], "forward", 0)
    found = misuse.outcome(SPECS[name], dict(misuse.wrong(call))[what], Local(), Torch())
    assert found is not None and found.kind == misuse.GOOD, found


def test_classes_are_those_that_users_catch():
    assert issubclass(errors.OpTypeError, (TypeError,)) and issubclass(errors.OpTypeError, NotImplementedError)
    assert issubclass(errors.OpIndexError, IndexError) and issubclass(errors.OpIndexError, RuntimeError)
    assert issubclass(errors.OpError, RuntimeError) and issubclass(errors.OpValueError, ValueError)


def test_the_words_of_a_good_call_are_found_wrong_by_the_sweep():
    _, call = draw(SPECS["add"], "forward", 0)
    kinds = {what.split(" for ")[0] for what, _ in misuse.wrong(call)}
    assert {"keyword", "no arguments", "text", "0 dims"} <= kinds


@pytest.mark.parametrize("share", range(SHARES))
def test_every_op(share):
    """Nothing of Python's, NumPy's or JAX's own; other classes and values where PyTorch refuses: those listed alone."""
    names = misuse.ops(share, SHARES)
    found = {(name, what): outcome for name, what, outcome in misuse.sweep(names)}
    bad = {call: outcome for call, outcome in found.items() if outcome.kind != misuse.GOOD}
    mine = {call: kind for call, kind in listed().items() if call[0] in names}
    unlisted = [f"{name} | {what} | {o.words()}" for (name, what), o in bad.items() if mine.get((name, what)) != o.kind]
    assert not unlisted
    assert not mine.keys() - bad.keys(), "listed, and as in PyTorch"
    assert len(found) > 1500


def test_the_list_names_calls_of_known_ops():
    assert {name for name, _ in listed()} <= SPECS.keys()


@pytest.mark.parametrize(
    ("call", "signature"),
    [
        (lambda x: sbpjax.exp(), "exp(input, *, out=None)"),
        (lambda x: sbpjax.mul(x, x, x), "mul(input, other, "),
        (lambda x: sbpjax.softmax(x, dimm=1), "dim, not dimm: softmax(input, dim"),
        (lambda x: x.flip(bogus=1), "leave out bogus: flip(input, *dims)"),
        (lambda x: sbpjax.nn.functional.relu(x, False, 1), "relu(input"),
        (lambda x: sbpjax.linalg.qr(x, modus="r"), "mode, not modus: qr(A, mode='reduced', *, out=None)"),
    ],
)
def test_a_wrong_signature_shows_the_right_one(call, signature):
    with pytest.raises(errors.OpTypeError) as caught:
        call(sbpjax.ones(2, 2))
    assert f"\n  fix:  {signature}" in str(caught.value)


def test_what_users_code_raises_goes_through():
    def distance(x, y):
        raise ValueError("mine")

    x = sbpjax.ones(2, 3)
    with pytest.raises(ValueError, match="^mine$"):
        sbpjax.nn.functional.triplet_margin_with_distance_loss(x, x, x, distance_function=distance)


def test_a_refused_dtype_is_refused_everywhere():
    x = sbpjax.ones(2, 2).to(sbpjax.complex64)
    with pytest.raises(NotImplementedError, match="not defined for complex"):
        sbpjax.maximum(x, x)
    with pytest.raises(NotImplementedError, match="not defined for complex"):
        sbpjax.compile(sbpjax.maximum)(x, x)


DIVISIONS = """
import sbpjax
def zeros(): return sbpjax.zeros(3, dtype=sbpjax.int64)
print(sbpjax.compile(lambda: (zeros() // zeros(), zeros() % zeros(), sbpjax.fmod(zeros(), zeros())))())
try: sbpjax.nanmean(sbpjax.zeros(0, 3, dtype=sbpjax.int64), 0)
except NotImplementedError as error: print(type(error).__name__)
"""


def test_no_division_of_constants_ends_the_process():
    done = subprocess.run([sys.executable, "-c", DIVISIONS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    assert done.stdout.endswith("OpTypeError\n"), done
