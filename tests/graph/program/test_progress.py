"""The line while a graph is compiled: at a terminal, after a while, and gone behind it."""

import contextlib
import io
import sys
import time
import types

import pytest

import sbpjax as flow
from sbpjax.graph.program import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    found = Terminal()
    # pytest sets its own between phases
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=found, modules={}))
    monkeypatch.setattr(progress, "_EVERY_S", 0.02)
    monkeypatch.delenv("SBPJAX_COMPILE_NOTE", raising=False)
    return found


def test_a_long_wait_is_shown_and_the_line_is_gone_behind_it(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SLOW_S", 0.02)
    with progress.show_activity("Trainer_0.build\nfor its state", "compiling"):
        time.sleep(0.3)
    parts = terminal.getvalue().split("\r")
    assert parts[0] == "" and len(parts) > 4
    assert set(parts[1:-2]) == {"Trainer_0.build: compiling for 0 s"}
    assert parts[-2:] == [" " * len(parts[1]), ""]


@pytest.mark.parametrize("reason", ["short", "no terminal", "off", "an error"])
def test_else_nothing_is_written(terminal, monkeypatch, reason):
    monkeypatch.setattr(progress, "SLOW_S", 60.0 if reason in ("short", "an error") else 0.0)
    if reason == "no terminal":
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    if reason == "off":
        monkeypatch.setenv("SBPJAX_COMPILE_NOTE", "off")
    before = time.perf_counter()
    try:
        with progress.show_activity("Trainer_0.build", "compiling"):
            assert reason != "an error", "of the block"
    except AssertionError as error:
        assert "of the block" in str(error) and reason == "an error"
    assert terminal.getvalue() == ""
    assert time.perf_counter() - before < 10


def test_below_a_cell_it_stays_and_says_how_long(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SLOW_S", 0.0)
    found = []
    handle = types.SimpleNamespace(update=lambda shown, raw: found.append(shown["text/plain"]))

    def display(shown, raw, display_id):
        found.append(shown["text/plain"])
        return handle

    shell = types.SimpleNamespace(kernel=None)
    progress.sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    with progress.show_activity("Trainer_0.build", "planning"):
        time.sleep(0.1)
    assert len(found) > 2 and found[0] == "Trainer_0.build: planning for 0 s"
    assert found[-1] == "Trainer_0.build: planning for 0.1 s" and terminal.getvalue() == ""


def test_graphs_show_it(monkeypatch):
    found = []

    def shown(requested, doing):
        found.append((requested.split("_")[0], doing))
        return contextlib.nullcontext()

    monkeypatch.setattr(progress, "show_activity", shown)

    class DisplayedReport(flow.nn.Graph):
        def build(self, x):
            return (x @ x).sum()

    DisplayedReport()(flow.ones(8, 8, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast))
    assert found == [("DisplayedReport", "planning"), ("DisplayedReport", "compiling")]
