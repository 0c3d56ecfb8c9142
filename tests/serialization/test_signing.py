"""Signatures, the user's key, the job's key, and folders that are not trusted."""

import os
import subprocess
import sys

import pytest

from sbpjax._core.serialization import signing
from sbpjax.errors import SignatureError, UnsafeFileError

KEY = b"k" * 32


def test_signatures():
    data = signing.sign(KEY, "meeting 3 of rank 1", b"body")
    assert len(data) == 32 + 4 and signing.verify_signature(KEY, "meeting 3 of rank 1", data) == b"body"
    assert signing.verify_signature(KEY, "", signing.sign(KEY, "", b"")) == b""
    wrong = [
        (KEY, "meeting 4 of rank 1", data),
        (b"l" * 32, "meeting 3 of rank 1", data),
        (KEY, "meeting 3 of rank 1", data[:-1]),
        (KEY, "meeting 3 of rank 1", data[:20]),  # a tag cut short
        (KEY, "meeting 3 of rank 1", b""),
        (KEY, "meeting 3 of rank 1", data[:32]),
        (KEY, "meeting 3 of rank", data[:32] + b" 1" + data[32:]),  # the border between context and body
    ]
    wrong += [(KEY, "meeting 3 of rank 1", data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :]) for i in range(len(data))]
    for key, context, changed in wrong:
        with pytest.raises(SignatureError, match="signature is not of this key") as raised:
            signing.verify_signature(key, context, changed)
        assert "\n  fix:  " in str(raised.value)


def test_derived_keys_differ():
    names = [("a",), ("b",), ("a", "b"), ("b", "a"), ()]
    assert len({signing.derive_key(KEY, *n) for n in names}) == len(names)


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_a_private_folder_is_made(tmp_path, umask):
    before = os.umask(umask)
    try:
        made = signing.private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert made.stat().st_mode & 0o777 == made.parent.stat().st_mode & 0o777 == 0o700
    link = tmp_path / "link"
    link.symlink_to(made)
    assert signing.private_folder(link) == link and signing.private_folder(made) == made
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        signing.private_folder(tmp_path / "broken")


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o707, 0o722])
def test_a_folder_open_to_others(tmp_path, mode):
    folder = tmp_path / "c"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(UnsafeFileError, match=f"others may write to it .mode {mode:o}") as raised:
        signing.private_folder(folder)
    assert "\n" not in str(raised.value)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(UnsafeFileError, match="others may write"):
        signing.private_folder(tmp_path / "link")


def test_what_somebody_else_owns(tmp_path, monkeypatch):
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    calls = (
        (signing.private_folder, tmp_path),
        (signing.private_folder, tmp_path / "link"),
        (signing.read_private_file, tmp_path / "key"),
        (signing.private_key, tmp_path / "key"),
    )
    for call, path in calls:
        with pytest.raises(UnsafeFileError, match=f"user {me} owns it, and this is user {me + 1}"):
            call(path)


def test_a_file_in_place_of_a_folder(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(UnsafeFileError, match="no folder"):
        signing.private_folder(tmp_path / "f")


def test_the_users_key(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    key, path = signing.private_key(), tmp_path / "sbpjax" / "key"
    assert len(key) == 32 and path.read_bytes() == key == signing.private_key(path)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(path.parent) == ["key"]


@pytest.mark.parametrize("spoil, words", [
    (lambda p: p.chmod(0o644), "mode 644"),
    (lambda p: p.chmod(0o602), "mode 602"),
    (lambda p: p.write_bytes(b"short"), "a key has 32 bytes, this file 5"),
    (lambda p: p.write_bytes(b"x" * 5000), "5000 bytes"),
    (lambda p: p.rename(p.with_name("other")) and p.symlink_to("other"), "is not used"),
    (lambda p: p.rename(p.with_name("other")) and p.mkdir(), "no plain file"),
    (lambda p: p.rename(p.with_name("other")) and os.mkfifo(p, 0o600), "no plain file"),
    (lambda p: p.parent.chmod(0o777), "others may write to it"),
])  # fmt: skip
def test_a_spoilt_key_is_refused_in_one_line(tmp_path, spoil, words):
    path = tmp_path / "keys" / "key"
    signing.private_key(path)
    signing._key_in.cache_clear()
    spoil(path)
    with pytest.raises(UnsafeFileError, match=words) as raised:
        signing.private_key(path)
    assert "\n" not in str(raised.value) and str(path.parent) in str(raised.value)


FORKED = """
import os, sys
from sbpjax._core.serialization import signing
ready, go = os.pipe()
for _ in range(8):
    if os.fork() == 0:
        os.close(go)
        os.read(ready, 1)  # until all are there
        os.write(1, signing.private_key(sys.argv[1]).hex().encode() + b"\\n")
        os._exit(0)
os.close(go)
sys.exit(any(os.wait()[1] for _ in range(8)))
"""


def test_processes_make_one_key(tmp_path):
    command = [sys.executable, "-c", FORKED, str(tmp_path / "keys" / "key")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and len(done.stdout.split()) == 8 and len(set(done.stdout.split())) == 1, done.stderr
    assert os.listdir(tmp_path / "keys") == ["key"]


def test_the_jobs_key(tmp_path, monkeypatch):
    for name in (signing.SECRET, signing.SECRET_FILE, *signing._JOB_NAMES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    users = signing.job_key()
    assert users == signing.job_key() != signing.private_key()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert signing.job_key() != users
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef\n")
    secret.chmod(0o600)
    monkeypatch.setenv(signing.SECRET_FILE, str(secret))
    from_file = signing.job_key()
    secret.chmod(0o640)
    with pytest.raises(UnsafeFileError, match="mode 640"):
        signing.job_key()
    monkeypatch.setenv(signing.SECRET, "0123456789abcdef")
    assert signing.job_key() == from_file
    monkeypatch.setenv(signing.SECRET, "password")
    with pytest.raises(SignatureError, match="at least 16 characters"):
        signing.job_key()
