"""Plans on disk: found again, never trusted blindly."""

import hashlib
import json
import logging
import multiprocessing.pool
import os

import jax
import jax.numpy as jnp
import pytest

from sbpjax._core.compiler import compile as compile_module
from sbpjax._core.compiler.compile import compile_program
from sbpjax._core.planner import disk, plan_program
from sbpjax._core.programs.normalise import normalise
from sbpjax._core.serialization import signing
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.placement import placement


@pytest.fixture
def planned(monkeypatch):
    """Count how often the planner runs."""
    calls = []

    def counted(*args, **kwargs):
        calls.append(args)
        return plan_program(*args, **kwargs)

    monkeypatch.setattr(compile_module, "plan_program", counted)
    return calls


def _compile(width=16, out="B", fn=lambda x, w: jax.nn.relu(x @ w)):
    p = placement("cpu", [0, 1, 2, 3])
    return compile_program(
        fn, p, [Layout(p, "S1", (8, width), "float32"), Layout(p, "S0", (width, 8), "float32")], [out]
    )


def test_the_second_time_the_plan_is_read(planned):
    first, second = _compile(), _compile()
    assert len(planned) == 1
    assert second.plan.strategies == first.plan.strategies
    assert second.plan.out_codes == first.plan.out_codes and second.plan.in_codes == first.plan.in_codes
    assert second.plan.bytes == first.plan.bytes > 0
    assert second.plan.modelled_us == first.plan.modelled_us


def test_another_program_pin_or_rule_is_another_plan(planned, monkeypatch):
    _compile()
    _compile(width=32)
    _compile(out="S0")
    _compile(fn=lambda x, w: jnp.tanh(x @ w))
    assert len(planned) == 4
    monkeypatch.setattr(disk, "_sources", lambda: "changed")
    _compile()
    assert len(planned) == 5


@pytest.mark.parametrize("damage", ["empty", "cut", "bytes", "other", "directory"])
def test_a_damaged_file_is_made_anew(planned, damage):
    expected = _compile().plan.bytes
    (path,) = disk.directory().glob("*.json")
    text = path.read_bytes()
    if damage == "directory":
        path.unlink()
        path.mkdir()
    else:
        damaged = {"empty": b"", "cut": text[: len(text) // 2], "bytes": b"\0" * 100, "other": text.replace(b"0", b"1")}
        path.write_bytes(damaged[damage])
    assert _compile().plan.bytes == expected
    assert len(planned) == 2


def test_a_plan_of_another_program_is_refused():
    first = _compile()
    longer = normalise(
        jax.make_jaxpr(lambda x, w: jnp.tanh(jax.nn.relu(x @ w)) + 1)(jnp.ones((8, 16)), jnp.ones((16, 8)))
    )
    disk.store("key", first.plan)
    assert disk.load("key", first.plan.program, (4,)) is not None
    assert disk.load("key", longer, (4,)) is None


def test_a_plan_that_somebody_else_wrote_is_not_used(planned, caplog):
    """It fits its program, and is signed as files were before; but not by this user's key."""
    expected = _compile()
    (path,) = disk.directory().glob("*.json")
    body = json.dumps(disk._encode(expected.plan), default=int)
    for forged in (f"{body}\n{hashlib.sha256(body.encode()).hexdigest()}".encode(),
                   signing.sign(b"another key".ljust(32), f"plans/{path.name}", body.encode())):  # fmt: skip
        path.write_bytes(forged)
        with caplog.at_level(logging.INFO, logger="sbpjax.plan"):
            assert disk.load(path.stem, expected.plan.program, (4,)) is None
        assert "signature is not of this key" in caplog.text
        caplog.clear()


def test_off_writes_nothing(planned, monkeypatch, tmp_path):
    monkeypatch.setenv("SBPJAX_CACHE_DIR", "off")
    _compile()
    _compile()
    assert len(planned) == 2
    assert not list(tmp_path.rglob("*.json"))


def test_a_directory_that_cannot_be_made_is_no_error(planned, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SBPJAX_CACHE_DIR", str(tmp_path / "file"))
    assert _compile().plan.bytes > 0


def test_old_plans_are_dropped(monkeypatch):
    monkeypatch.setattr(disk, "_MOST_FILES", 2)
    for width in (8, 16, 24, 32):
        _compile(width)
    assert len(list(disk.directory().glob("*.json"))) == 2


def test_writers_do_not_disturb_each_other():
    plan = _compile().plan
    threads = multiprocessing.pool.ThreadPool(8)
    threads.map(lambda _: disk.store("same", plan), range(64))
    threads.close()
    threads.join()
    assert disk.load("same", plan.program, (4,)).strategies == plan.strategies
    assert not [f for f in os.listdir(disk.directory()) if f.endswith(".tmp")]
