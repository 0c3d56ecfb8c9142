"""A mistake shows the frames of the user and a text in four parts; a defect, and who asks, shows all frames."""

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import sbpjax as flow
from sbpjax import errors
from sbpjax._core.runtime.tracebacks import fold_traceback
from sbpjax.errors import OpError, RuleError

ROOT = Path(errors.__file__).parents[1]
LIBRARY = str(ROOT / "sbpjax") + os.sep
MISTAKE = """
import sbpjax as flow

def product(x):
    return x @ x

"""


def ran(source, *arguments, tmp_path, **environment):
    """Run a program, and return what it wrote to stderr."""
    script = tmp_path / "jax" / "program.py"  # a user's folder may have the name of a dependency
    script.parent.mkdir(exist_ok=True)
    script.write_text(source)
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    new = {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "SBPJAX_CPU_DEVICES": "2", **environment}
    command = [sys.executable, *arguments, str(script)]
    done = subprocess.run(command, env={**os.environ, **new}, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def shows_the_users_frames_alone(text):
    assert "program.py" in text and "return x @ x" in text
    assert f'File "{LIBRARY}' not in text and "site-packages" not in text
    assert all(part in text for part in ("matmul", "seen:", "rule:", "fix:"))
    assert "The above exception" not in text and "During handling" not in text
    return True


def test_a_script(tmp_path):
    source = MISTAKE + "print(product(flow.ones(2, 3)))\n"
    assert shows_the_users_frames_alone(ran(source, tmp_path=tmp_path))
    everything = ran(source, tmp_path=tmp_path, SBPJAX_FULL_TRACEBACK="1")
    assert f'File "{LIBRARY}' in everything and "return x @ x" in everything


def test_a_hook_of_the_user_is_called_with_what_is_left(tmp_path):
    hook = """
import sys
def hook(kind, error, trace):
    import traceback
    print("mine", kind.__name__)
    traceback.print_exception(error)
sys.excepthook = hook
"""
    before = ran(hook + MISTAKE + "product(flow.ones(2, 3))\n", tmp_path=tmp_path)
    assert "mine OpError" in before and shows_the_users_frames_alone(before)
    after = ran(MISTAKE + hook + "product(flow.ones(2, 3))\n", tmp_path=tmp_path)
    assert "mine OpError" in after and f'File "{LIBRARY}' in after  # theirs stays as it is


def test_a_thread(tmp_path):
    source = MISTAKE + "import threading\nthreading.Thread(target=product, args=(flow.ones(2, 3),)).start()\n"
    assert shows_the_users_frames_alone(ran(source, tmp_path=tmp_path))


def test_ranks_in_threads(tmp_path):
    text = ran(MISTAKE + "flow.simulate(ranks=2)(lambda: product(flow.ones(2, 3)))()\n", tmp_path=tmp_path)
    assert shows_the_users_frames_alone(text) and "raised by rank 0 of 2" in text


def test_the_launcher(tmp_path):
    launch = ("-m", "sbpjax.distributed.launch", "--nproc_per_node", "2", "--master_port", "0", "--cpu_devices", "1")
    text = ran(MISTAKE + "product(flow.ones(2, 3))\n", *launch, tmp_path=tmp_path)
    assert shows_the_users_frames_alone(text)


NOTEBOOK = """
import sys, traceback, types

class Shell:  # of IPython, what a library sees
    def showtraceback(self, exc_tuple=None, tb_offset=None):
        traceback.print_exception(*(exc_tuple or sys.exc_info()))
    def run(self, cell):
        try:
            cell()
        except Exception:
            self.showtraceback()

shell = Shell()
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
"""


def test_a_notebook(tmp_path):
    cell = "shell.run(lambda: product(flow.ones(2, 3)))\n"
    assert shows_the_users_frames_alone(ran(NOTEBOOK + MISTAKE + cell, tmp_path=tmp_path))


def test_ipython(tmp_path):
    pytest.importorskip("IPython", reason="needs IPython: pip install ipython")
    text = ran(MISTAKE + "print(product(flow.ones(2, 3)))\n", "-m", "IPython", "--colors=NoColor", tmp_path=tmp_path)
    assert "return x @ x" in text and "rule:" in text and LIBRARY not in text


# ------------------------------------------------------------------------------------------------------- what is folded


def shown(call):
    """Return the files of the frames that are shown of an error, and its text."""
    with pytest.raises(BaseException) as caught:
        call()
    with fold_traceback(caught.value):
        text = "".join(traceback.format_exception(caught.value))
    assert any(LIBRARY in frame.filename for frame in traceback.extract_tb(caught.value.__traceback__))  # as before
    return text


class Divides(flow.nn.Graph):
    def build(self, x):
        return x * (1 // 0)


def test_the_programs_own_frames_stay():
    text = shown(lambda: Divides()(flow.ones(2)))
    assert "1 // 0" in text and "Divides()(flow.ones(2))" in text and LIBRARY not in text


INSIDE: dict = {}
SOURCE = """
def fails(error, cause=None):
    raise error from cause

def explains(call, error):
    try:
        call()
    except Exception as cause:
        raise error from cause
"""
exec(compile(SOURCE, LIBRARY + "made_for_this_test.py", "exec"), INSIDE)  # frames of a file of the library


@pytest.mark.parametrize("error", [RuleError("a row does not fit"), TypeError("None has no rows"), KeyboardInterrupt()])
def test_a_defect_shows_all_frames(error):
    assert "made_for_this_test.py" in shown(lambda: INSIDE["fails"](error))


def test_a_mistake_hides_what_it_was_raised_from_inside():
    text = shown(lambda: INSIDE["explains"](lambda: {}["inner"], OpError("seen, rule, fix")))
    assert "seen, rule, fix" in text and "made_for_this_test.py" not in text
    assert "inner" in text  # the lambda stands in the user's code: its lines stay
    cause = ValueError("of JAX")
    text = shown(lambda: INSIDE["fails"](OpError("seen, rule, fix"), cause))
    assert "seen, rule, fix" in text and "of JAX" not in text


def test_an_error_of_the_user_that_was_raised_from_a_mistake():
    def call():
        try:
            flow.ones(2, 3) @ flow.ones(2, 3)
        except OpError as error:
            raise LookupError("no model fits") from error

    with pytest.raises(LookupError) as caught:
        call()
    with fold_traceback(caught.value):
        text = "".join(traceback.format_exception(caught.value))
    assert LIBRARY not in text and "no model fits" in text and "rule:" in text
    assert LIBRARY in "".join(traceback.format_exception(caught.value))  # as before


def test_errors_of_a_group():
    def call():
        try:
            flow.ones(2, 3) @ flow.ones(2, 3)
        except OpError as error:
            raise ExceptionGroup("two", [error, ValueError("b")]) from None

    with pytest.raises(ExceptionGroup) as caught:
        call()
    with fold_traceback(caught.value):
        text = "".join(traceback.format_exception(caught.value))
    assert LIBRARY not in text and "rule:" in text


def test_all_frames_are_shown_to_who_asks(monkeypatch):
    monkeypatch.setenv("SBPJAX_FULL_TRACEBACK", "1")
    assert LIBRARY in shown(lambda: flow.ones(2, 3) @ flow.ones(2, 3))


# --------------------------------------------------------------------------------------------------------- wrong names


@pytest.mark.parametrize(
    ("space", "name", "meant"),
    [
        (flow, "rnadn", "randn"),
        (flow, "pipelin", "pipeline"),
        (flow.nn, "Liner", "Linear"),
        (flow.nn.functional, "rleu", "relu"),
        (flow.linalg, "nrom", "norm"),
    ],
)
def test_a_name_that_a_module_lacks(space, name, meant):
    with pytest.raises(AttributeError) as caught:
        getattr(space, name)
    assert str(caught.value) == f"module {space.__name__!r} has no attribute {name!r}. Did you mean: {meant!r}?"
    assert not hasattr(space, name) and caught.value.name == name


def test_a_name_that_nothing_is_near_to():
    with pytest.raises(AttributeError, match=r"has no attribute 'xyzzyx'$"):
        flow.xyzzyx  # noqa: B018


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        (lambda: flow.ones(2).sofmax, "softmax"),
        (lambda: flow.optim.Admw, "AdamW"),
        (lambda: flow.sbp.splt(0), "split"),
        (lambda: flow.nn.Graph().comple, "compile"),
    ],
)
def test_a_wrong_name_is_shown_with_the_nearest(wrong, meant):
    with pytest.raises(AttributeError) as caught:
        wrong()
    before = str(caught.value)
    with fold_traceback(caught.value):
        assert str(caught.value) == f"{before}. Did you mean: {meant!r}?"
    assert str(caught.value) == before and "Did you mean" not in before


@pytest.mark.parametrize(("wrong", "meant"), [("flow.ones(2).sofmax", "softmax"), ("flow.rnadn", "randn")])
def test_a_terminal_shows_the_nearest_once(wrong, meant, tmp_path):
    text = ran(f"import sbpjax as flow\n{wrong}", tmp_path=tmp_path)
    assert text.count("Did you mean") == 1 and text.endswith(f". Did you mean: {meant!r}?\n")
    assert f'File "{LIBRARY}' not in text


def test_a_wrong_name_in_a_notebook(tmp_path):
    text = ran(NOTEBOOK + "import sbpjax as flow\nshell.run(lambda: flow.ones(2).sofmax)\n", tmp_path=tmp_path)
    assert text.count("Did you mean: 'softmax'?") == 1


def test_a_wrong_name_of_the_users_own_stays_as_it_is(tmp_path):
    with pytest.raises(AttributeError) as caught:
        Path().nmae  # noqa: B018
    with fold_traceback(caught.value):
        assert "Did you mean" not in str(caught.value) and caught.value.obj == Path()
