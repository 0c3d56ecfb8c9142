"""Doctor: each finding is a row, and what is wrong is marked and says how to mend it."""

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
    monkeypatch.setattr(doctor, "_LIST_DEVICES", program)
    row = rows_of(devices_s=0.5 if "sleep" in program else 60)["devices"]
    assert row.state == state and text in row.text


def test_silent_driver_is_reported_while_it_is_awaited(monkeypatch):
    monkeypatch.setattr(doctor, "_LIST_DEVICES", "import time; time.sleep(60)")
    monkeypatch.setattr(doctor, "_REPORT_S", 0.2)
    states = [row.state for row in doctor.findings(devices_s=0.7) if row.subject == "devices"]
    assert states[0] == "..." and states[-1] == "BAD"


def test_folder_that_cannot_be_written_is_bad(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_devices", lambda limit_s: iter(()))
    monkeypatch.setenv("SBPJAX_CACHE_DIR", str(tmp_path / "cache"))
    assert rows_of()["cache"].state == "ok"
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    row = rows_of()["cache"]
    assert row.state == "BAD" and "SBPJAX_CACHE_DIR" in row.text


def test_secrets_are_not_printed(monkeypatch):
    monkeypatch.setattr(doctor, "_devices", lambda limit_s: iter(()))
    monkeypatch.setenv("SBPJAX_SERVING_TOKEN", "abc123")
    texts = [row.text for row in doctor.findings() if row.subject == "variable"]
    assert "SBPJAX_SERVING_TOKEN=(set)" in texts and not any("abc123" in text for text in texts)


def test_exit_code_is_one_if_something_is_bad(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "findings", lambda: iter([doctor.Row("jax", "BAD", "not installed")]))
    assert doctor.main([]) == 1 and "1 to mend" in capsys.readouterr().out
