"""The cache of compiled programs: what is counted, what a sweep drops, the command."""

import os
import subprocess
import sys
import time

import pytest

from sbpjax._core.serialization import cache_folder


@pytest.fixture(params=["chosen", "default"])
def folder(request, tmp_path, monkeypatch):
    """Return the root of a cache: of the user's choice, where JAX's files lie in the root, or the default."""
    if request.param == "chosen":
        monkeypatch.setenv("SBPJAX_CACHE_DIR", str(tmp_path))
        return tmp_path
    monkeypatch.delenv("SBPJAX_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sbpjax"


def put(path, size, days_ago):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    then = time.time() - days_ago * 86_400
    os.utime(path, (then, then))
    return path


def filled(folder):
    of_jax = folder if os.environ.get("SBPJAX_CACHE_DIR") else folder / "xla"
    old = put(of_jax / "jit_f-1-cache", 4000, 30)
    middle = put(folder / "eager" / "a", 3000, 20)
    new = put(folder / "plans" / "b", 2000, 1)
    other = put(folder / "hub" / "weights", 9000, 99), put(folder / "key", 32, 99)
    return old, middle, new, other


def test_a_sweep_drops_what_was_not_used_for_longest_and_nothing_else(folder):
    old, middle, new, other = filled(folder)
    assert cache_folder.sweep(9000) == 0 and old.exists()
    assert cache_folder.sweep(8000) == 4000
    assert [p.exists() for p in (old, middle, new)] == [False, True, True]
    os.utime(middle, (time.time(), middle.stat().st_mtime))  # read today
    assert cache_folder.sweep(4000) == 2000
    assert [p.exists() for p in (middle, new, *other)] == [True, False, True, True]


def test_a_process_sweeps_once_an_hour(folder, monkeypatch):
    old, middle, new, _ = filled(folder)
    monkeypatch.setenv("SBPJAX_CACHE_MB", "0")
    cache_folder.sweep_now_and_then()
    assert not any(p.exists() for p in (old, middle, new))
    filled(folder)
    cache_folder.sweep_now_and_then()
    assert all(p.exists() for p in (old, middle, new))
    os.utime(folder / "swept", (0, time.time() - 4000))
    cache_folder.sweep_now_and_then()
    assert not any(p.exists() for p in (old, middle, new))


def test_info_and_clear(folder, capsys):
    *files, other = filled(folder)
    cache_folder.main(["info"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"folder {folder}"
    assert [line.split()[:2] for line in lines[1:]] == [["xla", "1"], ["eager", "1"], ["plans", "1"], ["all", "3"]]
    assert "of 2,048 MB" in lines[-1]
    cache_folder.main(["clear"])
    assert capsys.readouterr().out == "dropped 3 files, 0.0 MB\n"
    assert not any(p.exists() for p in files) and all(p.exists() for p in other)


def test_the_cache_may_be_off(monkeypatch, capsys):
    monkeypatch.setenv("SBPJAX_CACHE_DIR", "off")
    cache_folder.sweep_now_and_then()
    cache_folder.main(["info"])
    assert capsys.readouterr().out.startswith("the cache is off")
    with pytest.raises(SystemExit, match="2"):
        cache_folder.main(["burn"])
    assert "usage" in capsys.readouterr().err


def test_programs_of_a_process_are_counted_by_the_command(tmp_path):
    code = "import sbpjax as flow; flow.ones(4, placement=flow.placement('cpu', [0]), sbp=flow.sbp.broadcast) + 1"
    kept = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    env = kept | {"SBPJAX_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=120)
    assert (tmp_path / "swept").exists()
    command = [sys.executable, "-m", "sbpjax.cache", "info"]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=120)
    xla = done.stdout.splitlines()[1].split()
    assert xla[0] == "xla" and int(xla[1]) > 0
