"""Warnings and errors name the user's line, not one of the library that varies with its depth."""

import contextlib
import inspect
import sys
import warnings
from pathlib import Path

import pytest

import sbpjax as flow
from sbpjax._core.runtime import user_line

LIBRARY = Path(flow.__file__).parent


def _box_eagerly():
    place = flow.placement("cpu", [0, 1])
    x, w = (flow.ones(4, 4).to_global(place, flow.sbp.split(0)) for _ in range(2))
    with flow.boxing_policy("warn"):
        return x @ w


def _box_in_a_backward():
    place = flow.placement("cpu", [0, 1])
    w = flow.ones(4, 4).to_global(place, flow.sbp.split(0)).requires_grad_()
    loss = (w @ w).sum()
    with flow.boxing_policy("warn"):
        loss.backward()


def _convert():
    x = flow.ones(4, 4).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    with flow.boxing_policy("warn"):
        return x.to_global(sbp=flow.sbp.broadcast)


def _fail_in_a_hook():
    def fails(*_):
        raise KeyError("hook")

    layer = flow.nn.Linear(2, 2)
    layer.register_forward_hook(fails, always_call=True)
    layer(flow.ones(3, 3))


def _leave_constraints_out():
    class Own(flow.distributions.Distribution):
        pass

    return Own(validate_args=True)


def _step_without_a_gradient():
    model = flow.nn.Linear(2, 2)
    optimizer = flow.optim.SGD([*model.parameters(), flow.ones(2, requires_grad=True)], lr=0.1)

    class Step(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    return Step()(flow.ones(2, 2))


def _clip_nothing():
    optimizer = flow.optim.SGD([flow.ones(2, requires_grad=True)], lr=0.1)
    return optimizer.clip_grad()


def _give_a_parameter_twice():
    w = flow.ones(2, requires_grad=True)
    return flow.optim.SGD([{"params": [w, w]}], lr=0.1)


def _compile_a_branch():
    return flow.func.compile_function(lambda x: x * 2 if x.sum() > 0 else x)(flow.ones(2))


WARNED = [
    _box_eagerly,
    _box_in_a_backward,
    _convert,
    _fail_in_a_hook,
    _leave_constraints_out,
    _step_without_a_gradient,
    _clip_nothing,
    _give_a_parameter_twice,
    _compile_a_branch,
    lambda: flow.nn.LSTM(2, 2, dropout=0.5),
    lambda: flow.nn.init.xavier_normal(flow.ones(2, 2)),
]


@pytest.mark.parametrize("call", WARNED)
def test_a_warning_names_the_users_line(call):
    with warnings.catch_warnings(record=True) as caught, contextlib.suppress(Exception):
        warnings.simplefilter("always")
        call()
    assert caught
    code = call.__code__
    lines = {line for c in (code, *filter(inspect.iscode, code.co_consts)) for _, _, line in c.co_lines()}
    assert {w.filename for w in caught} == {__file__}
    assert {w.lineno for w in caught} <= lines


def test_warnings_choose_their_line_in_one_file():
    calls = [f for f in LIBRARY.rglob("*.py") if "warnings.warn" in f.read_text()]
    assert calls == [Path(user_line.__file__)]


def test_errors_of_eager_ops_name_the_line_of_the_user():
    """Their programs are made inside context managers used as decorators, which have frames in contextlib."""
    x = flow.ones(2, 3)
    with pytest.raises(flow.errors.OpError, match=rf"test_user_line\.py:{sys._getframe().f_lineno + 1}\)"):
        x @ x


def test_a_module_that_the_library_imports_is_not_the_users(tmp_path, monkeypatch):
    """A rank once reported that it stood in SciPy, which JAX was importing."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("imported_by_the_library", "imported_by_the_user"):
        (tmp_path / f"{name}.py").write_text(
            "from sbpjax._core.runtime.user_line import user_line\nline = user_line()\n"
        )
    importing = compile("from imported_by_the_library import line", str(LIBRARY / "importing.py"), "exec")
    names = {}
    exec(importing, names)
    assert names["line"] == f"{__file__}:{sys._getframe().f_lineno - 1}"
    import imported_by_the_user

    assert imported_by_the_user.line == f"{tmp_path}/imported_by_the_user.py:2"
