"""What is said of compiling: one line after two seconds, on stderr, and only if it is wanted."""

import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from sbpjax._core.compiler.eager import recompile_log
from sbpjax.errors import UNKNOWN_LINE

TEXT = "compiling op programs: 3, 2.4 s so far; nn.Graph compiles the step as one"


@pytest.mark.parametrize(("note", "lines"), [("", [TEXT]), ("off", [])])
def test_two_seconds_of_compiling_are_said_once(monkeypatch, caplog, note, lines):
    monkeypatch.setenv("SBPJAX_COMPILE_NOTE", note)
    waited = recompile_log.CompileCounter()
    with caplog.at_level(logging.WARNING, logger="sbpjax"):
        for _ in range(9):
            waited.add(0.8)
    assert [record.getMessage() for record in caplog.records] == lines
    assert waited.programs == 9


def test_long_compiling_is_reported_again_while_it_goes_on(monkeypatch, caplog):
    monkeypatch.setenv("SBPJAX_COMPILE_NOTE", "")
    now_s = 100.0
    monkeypatch.setattr(recompile_log, "time", SimpleNamespace(monotonic=lambda: now_s))
    waited = recompile_log.CompileCounter()
    with caplog.at_level(logging.WARNING, logger="sbpjax"):
        for _ in range(21):
            now_s += 1.0
            waited.add(0.8)
        for _ in range(24):  # the program computes, and compiles now and then
            now_s += 20.0
            waited.add(0.05)
    found = [record.getMessage().split(";")[0] for record in caplog.records]
    assert found == [f"compiling op programs: {n}, {0.8 * n:.1f} s so far" for n in (3, 12, 21)]


@pytest.mark.parametrize(("line", "expected"), [("train.py:7", 1), (UNKNOWN_LINE, 0)])
def test_only_a_line_of_the_users_is_told_of_its_shapes(line, expected, caplog):
    with caplog.at_level(logging.WARNING, logger="sbpjax"):
        for size in range(recompile_log.WARN_AT_SHAPES + 5):
            recompile_log.count_compilation("sine", ((size,),), line)
    assert len(caplog.records) == expected


def test_new_shapes_in_ten_steps_are_told(monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, logger="sbpjax"):
        for step in range(recompile_log.WARN_IN_STEPS):
            assert not caplog.records
            for size in (2 * step, 2 * step + 1):
                recompile_log.count_compilation("sine", ((size,),), "steps.py:7")
            monkeypatch.setattr(recompile_log.steps, "done", recompile_log.steps.done + 1)
    (record,) = caplog.records
    assert "steps.py:7 has compiled 19 shapes of sine, now [18]" in record.getMessage()


def test_a_program_that_waits_for_its_ops_reads_it_on_stderr():
    code = """
import sbpjax
from sbpjax._core.compiler.eager import recompile_log
recompile_log.SLOW_S = 0.0
x = sbpjax.ones(3)
for op in (x.sin, x.cos, x.tanh):
    op()
"""
    env = {k: v for k, v in os.environ.items() if k != "SBPJAX_COMPILE_NOTE"} | {"SBPJAX_EVALUATE": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    (line,) = [line for line in done.stderr.splitlines() if "op programs" in line]
    assert line.startswith("compiling op programs: 1, ") and line.endswith("nn.Graph compiles the step as one")
    quiet = code.replace(
        "import sbpjax\n", "import logging, sbpjax\nlogging.getLogger('sbpjax').setLevel('ERROR')\n", 1
    )
    done = subprocess.run([sys.executable, "-c", quiet], env=env, capture_output=True, text=True, timeout=120)
    assert "op programs" not in done.stderr
