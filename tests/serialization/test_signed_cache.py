"""Files that one process leaves for the next: believed only if this user wrote them, in folders of this user."""

import os
import stat
import subprocess
import sys

import pytest

from sbpjax._core.serialization import signed_cache, signing
from sbpjax.errors import SignatureError


@pytest.fixture
def folder(tmp_path):
    signed_cache._key.cache_clear()
    signing.warn_once.cache_clear()
    yield tmp_path / "cache" / "programs"
    signed_cache._key.cache_clear()


def test_what_is_written_is_read(folder):
    assert signed_cache.read(folder, "a") is None
    assert signed_cache.write(folder, "a", b"body") and signed_cache.read(folder, "a") == b"body"
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o600 and os.listdir(folder) == ["a"]
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_other_files_are_not_believed(folder):
    signed_cache.write(folder, "a", b"body")
    whole = (folder / "a").read_bytes()
    others = signing.sign(b"o" * 32, "programs/a", b"body")
    for data in (b"", whole[:20], whole[:-1], whole + b"x", bytes([whole[0] ^ 1]) + whole[1:], others, b"body" * 20):
        (folder / "a").write_bytes(data)
        with pytest.raises(SignatureError):
            signed_cache.read(folder, "a")
    (folder / "b").write_bytes(whole)  # whole, and under another's name
    with pytest.raises(SignatureError):
        signed_cache.read(folder, "b")


@pytest.mark.parametrize("attack", ["mode", "mode of the parent", "link", "owner", "key"])
def test_a_folder_of_others_is_not_used_and_said_once(folder, attack, caplog, monkeypatch, tmp_path):
    signed_cache.write(folder, "a", b"body")
    signed_cache._key.cache_clear()
    if attack == "mode":
        folder.chmod(0o777)
    elif attack == "mode of the parent":
        folder.parent.chmod(0o775)
    elif attack == "link":  # to a folder in which others may write
        folder.rename(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").chmod(0o773)
        folder.symlink_to(tmp_path / "elsewhere")
    elif attack == "owner":
        me = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        signing.private_key().hex()
        (tmp_path / "sbpjax" / "key").chmod(0o666)
        signing._key_in.cache_clear()
    for _ in range(3):
        assert signed_cache.read(folder, "a") is None and not signed_cache.write(folder, "b", b"body")
        signed_cache._key.cache_clear()
    (record,) = caplog.records
    assert record.getMessage().startswith("compiled programs are not kept: ") and "\n" not in record.getMessage()
    monkeypatch.undo()
    assert not (folder / "b").exists()


def test_a_full_disk_leaves_nothing(folder, monkeypatch):
    signed_cache.write(folder, "a", b"body")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        signed_cache.write(folder, "b", b"body")
    assert os.listdir(folder) == ["a"]


@pytest.mark.parametrize("mode, used", [(0o755, True), (0o777, False)])
def test_the_cache_of_jax_lies_in_a_folder_of_this_user(tmp_path, mode, used):
    """What JAX finds there it runs, without a signature, so the folder decides."""
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    code = "import sbpjax, jax; sbpjax.ones(3) + 1; print(jax.config.jax_compilation_cache_dir)"
    env = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"} | {"SBPJAX_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == (str(cache) if used else "None"), done.stderr
    output = f"compiled programs are not kept: {cache} is not used: others may write to it (mode 777)"
    assert done.stderr.count("not kept") == done.stderr.count(output) == (not used)
