"""Folders between ranks: complete ones arrive, strangers and names from elsewhere are refused."""

import os

import pytest

from sbpjax._core.runtime import processes
from sbpjax.distributed.elastic import folder_transfer
from sbpjax.distributed.elastic.folder_transfer import FolderTransfer
from tests.distributed.elastic.test_channel import certificates  # noqa: F401

CONTENTS = {"state.json": b"{}", "arrays/0.bin": bytes(range(256)) * 12_000, "arrays/empty.bin": b""}


@pytest.fixture
def made(tmp_path):
    """Return a function that makes the transfer of a host, with its root and the names that it received."""

    def make(name):
        root, received = tmp_path / name, []
        root.mkdir()
        return FolderTransfer(root, lambda name: name.startswith("step"), received.append), root, received

    return make


def fill(root, name="step/0"):
    for file, data in CONTENTS.items():
        (root / name / file).parent.mkdir(parents=True, exist_ok=True)
        (root / name / file).write_bytes(data)


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def send(made):
    """Send a folder between two hosts, onto an older one of its name."""
    (sender, one, _), (receiver, two, received) = made("one"), made("two")
    fill(one)
    (two / "step" / "0").mkdir(parents=True)
    (two / "step" / "0" / "old").write_bytes(b"old")
    sender.send(receiver.address, "step/0")
    assert files(two / "step") == {f"0/{name}": data for name, data in CONTENTS.items()} and received == ["step/0"]
    return sender, receiver


def test_a_folder_arrives_and_replaces_an_older_one(made):
    send(made)


def test_names_that_are_not_expected_are_refused(made):
    (sender, one, _), (receiver, two, received) = made("one"), made("two")
    fill(one, "other/0")
    fill(one, "step/../../up")
    for name in ("other/0", "step/../../up"):
        with pytest.raises(OSError, match="ValueError: a folder"):
            sender.send(receiver.address, name)
    assert files(two) == {} and received == []


def test_another_run_is_refused(made, monkeypatch):
    receiver, two, received = made("two")
    monkeypatch.setattr(processes.current(), "key", b"another" * 5)
    sender, one, _ = made("one")
    fill(one)
    with pytest.raises(OSError, match="may have another secret"):
        sender.send(receiver.address, "step/0")
    assert files(two) == {} and received == []


def test_an_error_of_the_receiver_is_raised_by_the_sender(made):
    (sender, one, _), (receiver, two, received) = made("one"), made("two")
    fill(one)
    (two / "step").write_bytes(b"a file where the folder should be")
    with pytest.raises(OSError, match=r"answers (NotADirectory|FileExists)Error"):
        sender.send(receiver.address, "step/0")
    assert received == []


def test_mutual_tls(made, monkeypatch, certificates):  # noqa: F811
    def use(*names):
        monkeypatch.setenv(folder_transfer.TLS, os.pathsep.join(str(certificates / name) for name in names))

    use("one-host.pem", "one-host.key", "one.pem")
    _, receiver = send(made)
    use("two-host.pem", "two-host.key", "one.pem")
    stranger, root, _ = made("stranger")
    fill(root)
    with pytest.raises(OSError):
        stranger.send(receiver.address, "step/0")
    monkeypatch.delenv(folder_transfer.TLS)
    monkeypatch.setattr(folder_transfer, "_REACH_S", 1.0)  # it waits for a greeting that does not come
    plain, root, _ = made("plain")
    fill(root)
    with pytest.raises(OSError):
        plain.send(receiver.address, "step/0")
