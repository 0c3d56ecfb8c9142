"""Trails of calls: what they hold, what they leave out, and the text of the first difference."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import sbpjax as flow
from sbpjax import errors
from sbpjax._core.runtime import collective_trace
from sbpjax._core.runtime.collective_trace import KEPT, Call, CollectiveTrace
from sbpjax._core.runtime.trace_difference import difference


def made(*steps, members=(0, 1)):
    """Return the trail of calls given as ``words`` or ``(words, numbers)``."""
    trace = CollectiveTrace(members)
    known = {}
    for step in steps:
        words, *numbers = step if isinstance(step, tuple) else (step,)
        call = known.setdefault(words, Call(trace, words))
        call.note(tuple(numbers))
    return trace


def compare_traces(a, b, ended=()):
    return difference((0, 1), {0: a.recent_calls(), 1: b.recent_calls()}, ended)


def test_equal_calls_have_equal_states_and_any_difference_another():
    steps = ["add", ("mul", 2.0), ("mul", 3.0), "add"]
    state = made(*steps).state
    assert made(*steps).state == state
    others = [
        ["add", ("mul", 3.0), ("mul", 2.0), "add"],
        ["add", ("mul", 2.0), ("mul", 3.0)],
        ["add", ("mul", 2.0), ("mul", 3.0), "sub"],
        ["add", ("mul", 2.0), ("mul", 3.0000000000000004), "add"],
        ["add", ("mul", 2), ("mul", 3.0), "add"],
    ]
    assert state not in [made(*other).state for other in others]


@pytest.mark.parametrize("pair", [(-1, -2), (0.0, -0.0), (1, True), (2**61 - 1, 0), (float("inf"), 314159)])
def test_numbers_that_python_takes_for_equal_or_hashes_alike_differ(pair):
    a, b = pair
    assert made(("mul", a)).state != made(("mul", b)).state


def test_a_nan_is_the_same_number_on_all_ranks():
    assert made(("mul", float("nan"))).state == made(("mul", float("nan"))).state


def test_states_do_not_depend_on_the_process():
    code = "from test_collective_trace import made; print(made('add', ('mul', 2.5), ('mul', -1)).state)"
    root = str(Path(flow.__file__).parent.parent)
    seed = str(1 + (os.environ.get("PYTHONHASHSEED") == "1"))  # of the hashes of strings: another than here
    environment = {**os.environ, "PYTHONPATH": f"{root}:{Path(__file__).parent}", "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == str(made("add", ("mul", 2.5), ("mul", -1)).state)


def test_the_first_difference_is_named_with_both_lines():
    text = compare_traces(made("add", ("mul", 2.0), "add"), made("add", ("mul", 3.0), "add"))
    first, second = text.split("seen: ")[1].split("\n")[0].split("; ")
    assert text.startswith("call 2 of ranks [0, 1] together differs\n")
    assert first.startswith(f"rank 0: mul with 2 at {__file__}:")
    assert second.startswith(f"rank 1: mul with 3 at {__file__}:")
    assert "\n  rule: " in text and "\n  fix:  " in text


def test_the_line_of_the_longer_one_is_named():
    a, b = made("add", "mul", "mul"), made("add")
    text = compare_traces(a, b, ended=[1])
    assert text.startswith("call 2 of") and f"rank 0: mul at {__file__}:" in text
    assert "rank 1 has come to the end of its program after 1 calls" in text
    assert "rank 0 waits after 1 calls" in compare_traces(b, a)


def test_a_difference_before_what_is_kept_says_so():
    a, b = (made(*["add"] * (KEPT + 10)) for _ in range(2))
    b.ring = [(state + 1, *rest) for state, *rest in b.ring]
    assert "the first difference is before call" in compare_traces(a, b)
    assert "no call is kept by both" in compare_traces(a, made("add"))
    assert a.at(5) is None and a.at(KEPT + 5) is not None and a.at(KEPT + 11) is None


def test_alike_programs_with_state_are_told_apart_by_their_order():
    def run(*order):
        trace = CollectiveTrace((0, 1))
        graphs = [Call(trace, "build", "text", numbered=True) for _ in range(2)]
        for k in (0, 1, *order):
            graphs[k].note()
        return trace

    assert run(0, 1).state == run(0, 1).state != run(1, 0).state
    assert "rank 0: build, program 1 at" in compare_traces(run(0, 1), run(1, 0))


def test_a_meeting_that_did_not_take_place_is_taken_back(monkeypatch):
    monkeypatch.setattr(collective_trace, "trails", {})
    trace = collective_trace.trace_of((0, 1))
    with collective_trace.trace_rendezvous("one", (0, 1)) as seen:
        assert seen == [[2, 1, trace.state]] and trace.waits
    before = trace.count, trace.state
    with pytest.raises(errors.LostRankError), collective_trace.trace_rendezvous("two", (0, 1)):
        raise errors.LostRankError
    assert (trace.count, trace.state) == before and not trace.waits
    with collective_trace.trace_rendezvous("alone", (0,)) as seen:
        assert seen is None


def test_members_that_differ_raise_and_begin_anew(monkeypatch):
    monkeypatch.setattr(collective_trace, "trails", {})
    call = collective_trace.call_of([1, 0], "add")
    call.note()
    mine, theirs = [[[0, 1], 1, call.trace.state]], [[[0, 1], 1, 7]]
    accounts = {0: made("add").recent_calls(), 1: made("mul").recent_calls()}
    collective_trace.compare({0: mine, 1: mine}, lambda *_: accounts)
    collective_trace.compare({0: mine, 1: None}, lambda *_: accounts)  # of another thread
    for other in (theirs, []):
        call.note()
        with pytest.raises(errors.AgreementError, match="rank 0: add at .*; rank 1: mul at"):
            collective_trace.compare({0: mine, 1: other}, lambda *_: accounts)
        assert (call.trace.count, call.trace.state) == (0, 0)
    assert call.trace.epoch == 2


def test_other_threads_and_work_of_one_process_leave_no_trail():
    trace = CollectiveTrace((0, 1))
    thread = threading.Thread(target=Call(trace, "add").note)
    thread.start()
    thread.join()
    assert trace.count == 0
    assert collective_trace.call_of([3, 3], "add") is None
    before = {members: t.count for members, t in collective_trace.trails.items()}
    p = flow.placement("cpu", [0, 1])
    (flow.ones(4, placement=p, sbp=flow.sbp.split(0)) + 1).sum().item()
    assert {members: t.count for members, t in collective_trace.trails.items()} == before


def test_off_keeps_no_trail_and_other_words_are_refused(monkeypatch):
    monkeypatch.setattr(collective_trace._switch, "mode", None)
    monkeypatch.setenv("SBPJAX_CHECK", "off")
    assert collective_trace.mode() == "off" and collective_trace.call_of([0, 1], "add") is None
    monkeypatch.setattr(collective_trace._switch, "mode", None)
    monkeypatch.setenv("SBPJAX_CHECK", "sometimes")
    with pytest.raises(errors.OpValueError, match="one of always, sampled, off"):
        collective_trace.mode()


def test_numbers_are_named():
    trace = CollectiveTrace((0, 1))
    Call(trace, "step", names=("lr", "momentum")).note((0.1, 0.0))
    Call(trace, "step", names=("lr",)).note((0.1, 0.0))
    (_, named), (_, unnamed) = trace.recent_calls()[1]
    assert "step with lr 0.1, momentum 0 at " in named and "step with 0.1, 0 at " in unnamed


def test_the_fix_fits_what_differs():
    """Reads of a value are advised where one side brings a value together; not where a rank has ended."""
    text = compare_traces(made("identity float32[] as P -> B"), made("add"))
    assert "fix:  look for code that depends on the rank" in text and "value = x.item() on every rank" in text
    assert "x.item()" not in compare_traces(made("mul"), made("add"))
    text = compare_traces(made("add", "mul"), made("add"), ended=[1])
    assert "fix:  look why that rank ended: as many batches on every rank" in text and "value = " not in text
