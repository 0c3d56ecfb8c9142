"""Hub: local repositories, files by URL, and what is said without a connection."""

import hashlib
import pathlib

import pytest

import sbpjax as flow
from sbpjax import hub
from sbpjax.errors import HubError

HUBCONF = '''
dependencies = ["numpy"]

def tiny(width=2):
    """A tiny model."""
    import sbpjax
    return sbpjax.nn.Linear(width, 1)
'''


def test_a_local_repository(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    assert hub.list(tmp_path, source="local") == ["tiny"]
    assert hub.help(tmp_path, "tiny", source="local") == "A tiny model."
    assert hub.load(str(tmp_path), "tiny", 3, source="local").in_features == 3
    with pytest.raises(HubError, match="Cannot find callable huge in hubconf"):
        hub.load(str(tmp_path), "huge", source="local")
    (tmp_path / "hubconf.py").write_text(HUBCONF.replace("numpy", "no_such_package"))
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        hub.load(str(tmp_path), "tiny", source="local")
    with pytest.raises(ValueError, match='Unknown source: "web"'):
        hub.load(str(tmp_path), "tiny", source="web")
    with pytest.raises(HubError, match="trust_repo=True"):
        hub.load("owner/name", "tiny")


def test_files_by_url(tmp_path, monkeypatch):
    source = tmp_path / "weights.bin"
    source.write_bytes(b"weights" * 1000)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    target = tmp_path / "there" / "w.bin"
    hub.download_url_to_file(source.as_uri(), str(target), digest[:8], progress=False)
    assert target.read_bytes() == source.read_bytes()
    with pytest.raises(HubError, match="invalid hash value"):
        hub.download_url_to_file(source.as_uri(), str(tmp_path / "x"), "00000000", progress=False)
    assert not (tmp_path / "x").exists() and not list(tmp_path.glob("*.part"))
    with pytest.raises(HubError, match="no connection") as caught:
        hub.download_url_to_file((tmp_path / "absent").as_uri(), str(tmp_path / "y"), progress=False)
    assert "fix:  download it elsewhere" in str(caught.value)

    monkeypatch.setattr(hub, "_dir", None)
    hub.set_dir(tmp_path / "hub")
    assert pathlib.Path(hub.get_dir()) == tmp_path / "hub"
    saved = tmp_path / "hub" / "checkpoints" / "model"
    saved.parent.mkdir(parents=True)
    flow.save({"w": flow.ones(2)}, saved)
    state = hub.load_state_dict_from_url("https://example.invalid/model", map_location="cpu")
    assert state["w"].tolist() == [1, 1]


def test_unittest_decorators():
    ran = []

    @flow.unittest.skip_unless_1n4d()
    class Four(flow.unittest.TestCase):
        def test(self):
            ran.append(4)

    class One(flow.unittest.TestCase):
        @flow.unittest.skip_unless_2n1d()
        def test_two(self):
            ran.append(2)

        @flow.unittest.skip_unless_1n1d()
        def test_one(self):
            ran.append(1)

    import unittest

    result = unittest.TestResult()
    for case in (Four, One):
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert ran == [4, 1] and not result.errors and not result.failures
    assert [reason for _, reason in result.skipped] == [
        "only runs when there are 2 nodes with 1 devices each; here 1 with 8"
    ]
