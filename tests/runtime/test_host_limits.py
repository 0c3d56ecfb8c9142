"""What memory a process may still take, from files as Linux writes them."""

import os

import pytest

from sbpjax._core.runtime import host_limits

MEMINFO = "MemTotal:       24000000 kB\nMemFree:         1000 kB\nMemAvailable:    2000 kB\nSwapFree:         500 kB\n"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a folder in the place of /proc, and one in the place of the control groups."""
    proc, group = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    group.mkdir()
    (proc / "meminfo").write_text(MEMINFO)
    monkeypatch.setattr(host_limits, "_PROC", proc)
    monkeypatch.setattr(host_limits, "_GROUP", group)
    monkeypatch.setattr(host_limits, "_of_process", lambda: None)
    return proc, group


def test_available_memory_and_swap(machine):
    assert host_limits.free_bytes() == 2500 << 10


def test_a_container_may_have_less(machine):
    group = machine[1]
    (group / "memory.max").write_text("1000000\n")
    (group / "memory.current").write_text("800000\n")
    (group / "memory.stat").write_text("anon 700000\ninactive_file 100000\n")
    assert host_limits.free_bytes() == 300_000


def test_no_limit_of_a_container(machine):
    group = machine[1]
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("800000\n")
    assert host_limits.free_bytes() == 2500 << 10


def test_the_first_version_of_control_groups(machine):
    group = machine[1] / "memory"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (group / "memory.usage_in_bytes").write_text("800000\n")
    assert host_limits.free_bytes() == 2500 << 10
    (group / "memory.limit_in_bytes").write_text("900000\n")
    assert host_limits.free_bytes() == 100_000


def test_a_system_that_does_not_say_it(machine):
    (machine[0] / "meminfo").unlink()
    assert host_limits.free_bytes() is None


def test_a_limit_of_the_process(monkeypatch):
    monkeypatch.setattr(host_limits.resource, "getrlimit", lambda which: (1 << 50, -1))
    free = host_limits._of_process()
    assert free is None or 0 < free < 1 << 50


def test_cores_are_those_that_the_process_may_use(monkeypatch):
    assert host_limits.cores() == len(os.sched_getaffinity(0)) >= 1
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert host_limits.cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert host_limits.cores() == 1
