"""Profiles: named stretches, steps, schedules, traces."""

import json
import time

import pytest
import torch

import sbpjax as flow
from sbpjax import profiler
from sbpjax.profiler import ProfilerAction, ProfilerActivity


def test_named_stretches_and_steps():
    with profiler.profile(activities=[ProfilerActivity.CPU]) as p:
        for _ in range(2):
            with profiler.record_function("outer"):
                time.sleep(0.02)
                with profiler.record_function("inner"):
                    time.sleep(0.01)
            p.step()
        profiler.range_push("pushed")
        profiler.range_pop()
    averages = {a.key: a for a in p.key_averages()}
    assert averages["outer"].count == averages["inner"].count == 2
    assert averages["outer"].cpu_time >= 30e3 and averages["inner"].cpu_time >= 10e3
    outer, inner = averages["outer"], averages["inner"]
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total, rel=1e-6)
    step = averages["ProfilerStep#0"]
    assert step.self_cpu_time_total <= step.cpu_time_total - 30e3 and "pushed" in averages
    assert p.key_averages().table().splitlines()[1].startswith("outer ")


def test_a_decorator_and_a_trace(tmp_path):
    @profiler.record_function("double")
    def double(x):
        return x * 2

    ready = []
    handler = profiler.tensorboard_trace_handler(str(tmp_path))
    with profiler.profile(on_trace_ready=lambda p: (handler(p), ready.append(len(p.events())))):
        assert double(flow.ones(2)).tolist() == [2, 2]
    assert ready == [2]
    (file,) = tmp_path.iterdir()
    names = [e["name"] for e in json.loads(file.read_text())["traceEvents"]]
    assert names == ["ProfilerStep#0", "double"]


@pytest.mark.parametrize(
    "options",
    [{"wait": 1, "warmup": 1, "active": 2}, {"wait": 0, "warmup": 2, "active": 1, "repeat": 2, "skip_first": 3}],
)
def test_schedules_equal_torchs(options):
    ours, theirs = profiler.schedule(**options), torch.profiler.schedule(**options)
    assert [ours(i).name for i in range(14)] == [theirs(i).name for i in range(14)]


def test_only_scheduled_steps_are_recorded():
    seen = []
    schedule = profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with profiler.profile(schedule=schedule, on_trace_ready=lambda p: seen.append([r.name for r in p.events()])) as p:
        for step in range(6):
            with profiler.record_function(f"work{step}"):
                pass
            p.step()
    assert seen == [["work2", "ProfilerStep#2", "work3", "ProfilerStep#3"]]
    assert schedule(3) is ProfilerAction.RECORD_AND_SAVE
