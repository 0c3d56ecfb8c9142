"""The number of cores that a process may use."""

import os

from sbpjax._core.runtime.cores import cores


def test_cores_are_those_that_the_process_may_use(monkeypatch):
    assert cores() == len(os.sched_getaffinity(0)) >= 1
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1
