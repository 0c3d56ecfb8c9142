"""Progress: a line at a terminal and below a cell, lines in a log, nothing where the work is short."""

import io
import sys
import types

import pytest

import sbpjax as flow
from sbpjax._core.runtime import progress
from sbpjax._core.runtime.progress import Progress, show_progress


class Stream(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


class Clock:
    """A clock that waits move on, and on which the work ends at some second; `each` is called after every wait."""

    def __init__(self, end_s, each=lambda now_s: None):
        self.now_s, self.end_s, self.each = 0.0, end_s, each

    def __call__(self):
        return self.now_s

    def wait(self, seconds):
        ends = self.now_s + seconds >= self.end_s
        self.now_s = self.end_s if ends else self.now_s + seconds
        self.each(self.now_s)
        return ends


def shown(display, work, end_s, each=lambda now_s: None):
    clock = Clock(end_s, each)
    progress._show(display, work, clock.wait, clock, progress._Silence(0.0))


def shown_of_works(works, import_s=0.0):
    """Return the lines of a log, each with its second: of works ``(name, start, end)``."""
    lines, silence = [], progress._Silence(import_s)
    for name, start_s, end_s in works:
        stream, clock = Stream(False), Clock(end_s)
        clock.now_s = start_s
        stream.write = lambda text, clock=clock: lines.append(f"{clock.now_s:g} s: {text.strip()}")
        progress._show(progress._File(stream), Progress(name), clock.wait, clock, silence)
    return lines


def test_log_gets_a_line_after_5_s_and_every_9_s():
    stream = Stream(False)
    shown(progress._File(stream), Progress("Trainer_0.build: compiling"), 25.25)
    seconds = ["5 s", "14 s", "23 s", "25.2 s, done"]
    assert stream.getvalue().splitlines() == [f"Trainer_0.build: compiling for {s}" for s in seconds]


def test_line_of_a_log_has_the_share_and_the_detail():
    stream, work = Stream(False), Progress("preprocessing to data/docs", 200)
    shown(progress._File(stream), work, 15, lambda now_s: work.advance(50, f"{now_s:.0f} documents"))
    assert stream.getvalue().splitlines() == [
        "preprocessing to data/docs: 25 %, 5 documents, 5 s",
        "preprocessing to data/docs: 50 %, 14 documents, 14 s",
        "preprocessing to data/docs: 75 %, 15 documents, 15.0 s, done",
    ]


def test_terminal_gets_a_bar_that_is_gone_at_the_end():
    stream, work = Stream(True), Progress("loading runs/gpt", 4)
    shown(progress._Terminal(stream), work, 3.5, lambda now_s: work.advance(1))
    first = "loading runs/gpt: [######                  ] 25 %, 2 s"
    second = "loading runs/gpt: [############            ] 50 %, 3 s"
    assert stream.getvalue() == f"\r{first}\r{second}\r{' ' * len(second)}\r"


def test_line_below_a_cell_stays_and_shows_the_total_time(monkeypatch):
    found = []
    handle = types.SimpleNamespace(update=lambda shown, raw: found.append(shown["text/plain"]))

    def display(shown, raw, display_id):
        found.append(shown["text/plain"])
        return handle

    shown(progress._Cell(display), Progress("planning"), 3.5)
    assert found == ["planning for 2 s", "planning for 3 s", "planning for 3.5 s, done"]


def test_phases_of_a_first_call_share_the_time_without_a_line():
    phases = [("tracing", 0, 2), ("planning", 2, 6.5), ("compiling", 6.75, 11.25), ("loading", 12, 20)]
    assert shown_of_works(phases) == [
        "5 s: planning for 3 s",
        "6.5 s: planning for 4.5 s, done",
        "13 s: loading for 1 s",
        "20 s: loading for 8.0 s, done",
    ]


def test_start_of_a_program_counts_and_later_pauses_do_not():
    lines = shown_of_works([("tracing", 6, 6.9), ("planning", 7, 9.5), ("compiling", 20, 24.5)])
    assert lines == ["8 s: planning for 1 s", "9.5 s: planning for 2.5 s, done"]


@pytest.mark.parametrize(("is_terminal", "end_s"), [(False, 4.9), (True, 1.9)])
def test_short_work_shows_nothing(is_terminal, end_s):
    stream = Stream(is_terminal)
    shown((progress._Terminal if is_terminal else progress._File)(stream), Progress("planning"), end_s)
    assert stream.getvalue() == ""


def test_display_is_that_of_stderr(monkeypatch):
    stderr = types.SimpleNamespace(stderr=Stream(True), modules={})
    monkeypatch.setattr(progress, "sys", stderr)
    assert isinstance(progress._find_display(), progress._Terminal)
    stderr.stderr = Stream(False)
    assert isinstance(progress._find_display(), progress._File)
    monkeypatch.setattr(progress.processes, "current", lambda: types.SimpleNamespace(rank=1))
    assert progress._find_display() is None  # a line of each of many ranks would fill the log
    stderr.stderr = None
    assert progress._find_display() is None
    shell = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=None))
    stderr.modules["IPython"] = shell
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=None))
    assert isinstance(progress._find_display(), progress._Cell)


def test_only_the_outer_progress_is_shown_and_an_error_ends_it(monkeypatch):
    monkeypatch.delenv("SBPJAX_COMPILE_NOTE", raising=False)
    works = []
    monkeypatch.setattr(progress, "_find_display", lambda: progress._File(Stream(False)))
    monkeypatch.setattr(progress, "_show", lambda display, work, wait: works.append((work.text, wait(60.0))))
    for _ in range(2):
        with pytest.raises(ValueError, match="of the work"), show_progress("outer\nfor its state", 2) as outer:
            with show_progress("inner") as inner:
                inner.advance(1)
            outer.advance(1)
            raise ValueError("of the work")
        assert outer.done == inner.done == 1
    assert works == [("outer", True)] * 2
    monkeypatch.setenv("SBPJAX_COMPILE_NOTE", "off")
    with show_progress("off"):
        pass
    assert len(works) == 2


def test_planning_compiling_saving_and_loading_show_it(monkeypatch, tmp_path):
    monkeypatch.delenv("SBPJAX_COMPILE_NOTE", raising=False)
    works = []
    monkeypatch.setattr(progress, "_find_display", lambda: progress._File(Stream(False)))
    monkeypatch.setattr(progress, "_show", lambda display, work, wait: works.append(work) or wait(60.0))

    class Summed(flow.nn.Graph):
        def build(self, x):
            return (x @ x).sum()

    x = flow.ones(8, 8, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast)
    Summed()(x)
    flow.save({"x": x}, tmp_path / "state")
    flow.load(tmp_path / "state")
    texts = [work.text.partition("_")[0] + work.text.rpartition(":")[2] for work in works[:3]]
    assert texts == ["Summed tracing", "Summed planning", "Summed compiling"]
    assert [work.text for work in works[3:]] == [f"saving {tmp_path}/state", f"loading {tmp_path}/state"]
    assert works[-1].done == works[-1].total == 8 * 8 * 4


def test_a_pipeline_and_the_planner_reports_show_it(monkeypatch):
    monkeypatch.delenv("SBPJAX_COMPILE_NOTE", raising=False)
    works = []
    monkeypatch.setattr(progress, "_find_display", lambda: progress._File(Stream(False)))
    monkeypatch.setattr(progress, "_show", lambda display, work, wait: works.append(work) or wait(60.0))
    first, second = flow.placement("cpu", [0]), flow.placement("cpu", [1])

    class Staged(flow.nn.Graph):
        def build(self, x):
            return (x @ x).to_global(placement=second) + 1

    Staged()(flow.ones(8, 8, placement=first, sbp=flow.sbp.broadcast))
    assert [work.text.rpartition(": ")[2] for work in works] == ["tracing", "planning", "compiling"]

    class Planned(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = flow.nn.Linear(8, 8)
            self.config.enable_auto_parallel(True, placement=flow.placement("cpu", [0, 1]))

        def build(self, x):
            return self.model(x)

    graph, x = Planned(), flow.ones(8, 8)
    graph(x)
    works.clear()
    graph.auto_parallel_report(x)
    graph.sensitivity("model.weight", "B")
    texts = [work.text.rpartition(".")[2] for work in works]
    assert texts == ["auto_parallel_report: planning every strategy", "sensitivity: planning"]
