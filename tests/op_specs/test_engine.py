"""The engine of the specs: cases repeat, a wrong op is found, shrunk and shown as a script that runs."""

import numpy as np
import pytest

import sbpjax
from tests.op_specs.__main__ import main
from tests.op_specs.engine import SPECS, Different, Spec, register
from tests.op_specs.engine.cases import FORMS, draw
from tests.op_specs.engine.check import CheckError, check, one
from tests.op_specs.engine.compare import equal
from tests.op_specs.engine.excuses import EXCUSES
from tests.op_specs.engine.libraries import Plain
from tests.op_specs.engine.outcome import local, torch
from tests.op_specs.engine.report import script, shrink
from tests.support.generate import Dtype, call


@pytest.fixture
def wrong():
    """Give a spec of an op that is wrong at its fourth row: ``exp`` compared with something else."""

    def make(g):
        x = g.tensor(kinds="float32", min_dim=1)
        return call(x, **g.maybe(out=None))

    def reference(torch):
        def exp(x, out=None):
            result = torch.exp(x)
            return result + 1 if x.shape[0] > 3 else result

        return exp

    register(Spec("exp_wrong", make, reference=lambda torch: torch.exp))
    spec = Spec("exp", make, reference=reference)
    yield spec
    SPECS.pop("exp_wrong")


def _failing(spec):
    return next(t for t in (one(spec, "forward", 0, n) for n in range(20)) if t.failures).failures[0]


def test_a_wrong_op_is_found_and_shrunk(wrong):
    failure = _failing(wrong)
    assert failure.call.inputs()[0].shape == (4, 3)  # the first shape of the list with more than three rows
    assert failure.call.inputs()[0].suffix == "" and failure.call.kwargs == {}  # nothing that does not matter is left
    assert "wanted float32[4, 3]" in str(failure)


def test_the_script_of_a_failure_runs(wrong, capsys):
    failure = _failing(wrong)
    text = script(wrong, "method", failure.call, {})
    exec(compile(text, "<script>", "exec"), {"__name__": "shown"})
    printed = capsys.readouterr().out
    assert printed.startswith("tensor([[") and "sbpjax.exp(" not in printed
    assert "T.exp" not in script(wrong, "method", failure.call, {}) and "x0.exp()" in text


def test_scripts_on_placements_name_the_sbps():
    found = draw(SPECS["add"], "layouts", [0, 0, 0])
    text = script(SPECS["add"], "layouts", found[1], {"mesh": "2x2", "sbps": ["S0,B"]})
    compile(text, "<script>", "exec")
    assert "[[0, 1], [2, 3]]" in text and "['S0,B']" in text


@pytest.mark.parametrize("name", ["add", "nn.functional.conv2d", "cat", "Tensor.__getitem__"])
def test_choices_replay(name):
    spec = SPECS[name]
    for seed in range(5):
        first, made = draw(spec, "forward", [seed])
        _, again = draw(spec, "forward", [seed], first.choices)
        assert script(spec, "forward", made, {}) == script(spec, "forward", again, {})


def test_shrink_stops_at_what_matters():
    spec = Spec("x", lambda g: call(g.pick(*range(50)), g.pick("a", "b", "c"), g.flag()))
    drawn = next(d for d in (draw(spec, "forward", [s]) for s in range(99)) if d[1].args[0] > 20)

    def fails(candidate):
        return Different("too large") if candidate.args[0] >= 7 else None

    made, _ = shrink(spec, "forward", [0], drawn[0].choices, fails)
    assert made.args == (7, "a", False)


def test_check_raises_with_a_script(wrong):
    SPECS["exp_wrong"] = wrong
    with pytest.raises(CheckError, match=r"(?s)exp \(forward\): .*def case\(T"):
        check("exp_wrong", cases=20, forms=("forward",))


def test_command_line(capsys):
    assert main(["neg", "--cases", "1", "--forms", "forward,method"]) == 0
    assert "cases, 0 differ" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["no_such_op"])


def test_a_wrong_slope_at_a_corner_is_found():
    """The derivative of |x| at 0 is a convention: PyTorch's is 0, that of the larger of x and -x is not."""

    def reference(torch):
        return lambda x: torch.where(x >= 0, x, -x)

    spec = Spec("abs", lambda g: call(g.tensor((5,), "float32")), reference=reference)
    assert not any(one(spec, "double", 0, n).failures for n in range(5))
    assert any(one(spec, "corners", 0, n).failures for n in range(5))


def test_comparison_is_strict():
    one_, two = Plain("float32", np.ones(2, np.float32)), Plain("float32", np.full(2, 1 + 1e-4, np.float32))
    equal(one_, one_)
    for wrong_ in (two, Plain("float64", one_.array), Plain("float32", np.ones((1, 2), np.float32)), 1.0, [one_]):
        with pytest.raises(Different):
            equal(wrong_, one_)
    with pytest.raises(Different):
        equal(Plain("float32", np.array([np.nan], np.float32)), Plain("float32", np.array([np.inf], np.float32)))
    equal(two, one_, tol={"float32": 1e-3})
    with pytest.raises(Different):
        equal(True, 1)


def test_denormal_numbers_count_as_zeros():
    """PyTorch's exp(-100) in single precision is 4e-44."""
    zero, least = (Plain("float32", np.array([v], np.float32)) for v in (0.0, 2e-38))
    equal(zero, Plain("float32", np.array([4e-44], np.float32)))
    with pytest.raises(Different):
        equal(zero, least)


def test_dtypes_are_each_librarys_own():
    made = call(Dtype("bfloat16"))
    assert local().build(made)[0] == (sbpjax.bfloat16,) and torch().build(made)[0] == (torch().package.bfloat16,)


@pytest.mark.parametrize("excuse", EXCUSES.values(), ids=lambda e: e.witness[0])
def test_exceptions_still_occur(excuse):
    name, form, seed, number = excuse.witness
    assert name in excuse.names.split()
    assert one(SPECS[name], form, seed, number).excused == 1


def test_specs_say_why():
    """A spec that turns something off gives its reason, and so does a tolerance of its own."""
    silent = [s.name for s in SPECS.values() if not s.reason and (not s.traced or not s.layouts) and s.check is None]
    assert silent == []
    assert set(FORMS) >= {"forward", "double", "layouts", "traced"}
