"""Doctor: each finding is a row, and what is wrong is marked and says how to mend it."""

from pathlib import PurePosixPath

import pytest

from sbpjax._core.inspect import doctor


def rows_of(**options):
    return {row.subject: row for row in doctor.findings(**options) if row.subject != "variable"}


def test_findings_name_versions_devices_and_extras():
    rows = rows_of()
    assert {"python", "sbpjax", "jax", "host", "devices", "cache", "port", "train", "tpu"} <= rows.keys()
    assert rows["jax"].state == "ok" and rows["devices"].state == "ok" and " x cpu (cpu)" in rows["devices"].text


def test_absent_package_is_bad_and_absent_extra_is_not(monkeypatch):
    monkeypatch.setattr(doctor, "REQUIRED", ("jax", "no-such-package"))
    monkeypatch.setattr(doctor, "packages_of", lambda extra: ["no-such-package>=3"])
    monkeypatch.setattr(doctor, "_devices", lambda limit_s: iter(()))
    rows = rows_of()
    assert rows["no-such-package"] == ("no-such-package", "BAD", "not installed: pip install no-such-package")
    assert rows["iree"].state == "-" and rows["iree"].text.startswith("no-such-package not installed: pip install")


@pytest.mark.parametrize(
    "program, state, text",
    [
        ("import time; time.sleep(60)", "BAD", "no answer within 0.5 s"),
        ("raise RuntimeError('the driver is too old')", "BAD", "RuntimeError: the driver is too old"),
        ("import os; os.abort()", "BAD", "exit code -6"),
    ],
    ids=["hangs", "raises", "aborts"],
)
def test_devices_that_fail_are_a_row(program, state, text, monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", ())
    monkeypatch.setattr(doctor, "_LIST_DEVICES", program)
    row = rows_of(devices_s=0.5 if "sleep" in program else 60)["devices"]
    assert row.state == state and text in row.text


def test_silent_driver_is_reported_while_it_is_awaited(monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", ())
    monkeypatch.setattr(doctor, "_LIST_DEVICES", "import time; time.sleep(60)")
    monkeypatch.setattr(doctor, "_REPORT_S", 0.2)
    states = [row.state for row in doctor.findings(devices_s=0.7) if row.subject == "devices"]
    assert states[0] == "..." and states[-1] == "BAD"


@pytest.mark.parametrize(
    "requirement, program, state, text",
    [
        ("numpy>=2.0", "import numpy", "ok", "numpy 2."),
        ("numpy>=99", "import numpy", "BAD", "too old: pip install"),
        ("numpy>=2.0", "raise OSError('no libcudart.so.12')", "BAD", "cannot be loaded (OSError: no libcudart.so.12)"),
        ("numpy>=2.0", "import os; os.abort()", "BAD", "cannot be loaded (exit code -6)"),
    ],
    ids=["loads", "old", "raises", "aborts"],
)
def test_an_extra_is_ok_if_it_can_be_loaded(requirement, program, state, text, monkeypatch):
    monkeypatch.setattr(doctor, "packages_of", lambda extra: [requirement])
    monkeypatch.setattr(doctor, "_LOAD", {"cuda12": program})
    monkeypatch.setattr(doctor, "_GPU_FILES", (__file__,))
    (row,) = doctor._extra("cuda12", 60.0)
    assert row.subject == "cuda12" and row.state == state and text in row.text


@pytest.mark.parametrize("extra, state", [("cuda12", "ok"), ("cuda13", "ok"), ("tpu", "BAD"), ("aot", "BAD")])
def test_cuda_s_plugin_without_a_gpu_is_for_compiling_ahead_of_time(extra, state, monkeypatch):
    monkeypatch.setattr(doctor, "packages_of", lambda extra: ["numpy>=2.0"])
    monkeypatch.setattr(doctor, "_LOAD", {extra: "raise RuntimeError('Unable to load CUDA. Is it installed?')"})
    monkeypatch.setattr(doctor, "_GPU_FILES", ("/dev/no-such-gpu",))
    (row,) = doctor._extra(extra, 60.0)
    assert row.state == state
    assert row.text.endswith(": for compiling ahead of time; no GPU here") == (state == "ok")


def test_packages_of_a_namespace_are_imported_by_their_whole_name(monkeypatch):
    files = [
        PurePosixPath(name) for name in ("jax_plugins/xla_cuda12/__init__.py", "jax_plugins/xla_cuda12/a/__init__.py")
    ]
    monkeypatch.setattr(doctor.metadata, "files", lambda name: files)
    assert doctor._modules("jax-cuda12-pjrt") == ["jax_plugins.xla_cuda12"]


def test_folder_that_cannot_be_written_is_bad(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", ())
    monkeypatch.setattr(doctor, "_devices", lambda limit_s: iter(()))
    monkeypatch.setenv("SBPJAX_CACHE_DIR", str(tmp_path / "cache"))
    assert rows_of()["cache"].state == "ok"
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    row = rows_of()["cache"]
    assert row.state == "BAD" and "SBPJAX_CACHE_DIR" in row.text


def test_secrets_are_not_printed(monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", ())
    monkeypatch.setattr(doctor, "_devices", lambda limit_s: iter(()))
    monkeypatch.setenv("SBPJAX_SERVING_TOKEN", "abc123")
    texts = [row.text for row in doctor.findings() if row.subject == "variable"]
    assert "SBPJAX_SERVING_TOKEN=(set)" in texts and not any("abc123" in text for text in texts)


def test_exit_code_is_one_if_something_is_bad(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "findings", lambda: iter([doctor.Row("jax", "BAD", "not installed")]))
    assert doctor.main([]) == 1 and "1 to mend" in capsys.readouterr().out
