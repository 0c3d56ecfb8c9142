"""Hub: local repositories, files by URL, and what is said without a connection."""

import hashlib
import http.server
import os
import pathlib
import threading
import time
import urllib.parse

import pytest

import sbpjax as flow
from sbpjax._core.compat import download, hub
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


def test_an_entry_is_read_from_its_source(tmp_path):
    path = tmp_path / "hubconf.py"
    for value in range(3):  # within a second, with one size
        path.write_text(f"def entry(): return {value}")
        os.utime(path, (1e9, 1e9))
        assert flow.hub.load(str(tmp_path), "entry", source="local") == value


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


class Server(http.server.BaseHTTPRequestHandler):
    """Redirects, answers that end early, and silence; keeps what it was asked."""

    requested: list = []

    def do_GET(self):
        self.requested.append((self.path, self.headers.get("Authorization")))
        if self.path == "/silent":
            time.sleep(2)
            return
        self.send_response(302 if self.path == "/moved" else 200)
        if self.path == "/moved":
            self.send_header("Location", f"http://localhost:{self.server.server_port}/file")
        self.send_header("Content-Length", "7" if self.path in ("/file", "/short") else "0")
        self.end_headers()
        self.wfile.write({"/file": b"weights", "/short": b"wei"}.get(self.path, b""))

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    """Return the URL of a server of this machine, to which both names of it lead, and what it was asked."""
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    monkeypatch.setattr(Server, "requested", [])
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setattr(download, "TOKEN_HOSTS", ("127.0.0.1",))
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield f"http://127.0.0.1:{found.server_port}", Server.requested
    found.shutdown()
    found.server_close()


def test_a_token_goes_over_https_to_its_hosts_alone(server, tmp_path, monkeypatch):
    url, requested = server
    hub.download_url_to_file(f"{url}/file", str(tmp_path / "a"), progress=False)
    assert requested == [("/file", None)]  # the host is right, but not over https
    real = urllib.parse.urlparse
    requested.clear()
    monkeypatch.setattr(
        download, "urlparse", lambda url: real(url.replace("http:", "https:"))
    )  # as if all went over https
    hub.download_url_to_file(f"{url}/moved", str(tmp_path / "b"), progress=False)
    assert requested == [("/moved", "token secret"), ("/file", None)]  # of localhost, to which it is not for
    assert (tmp_path / "b").read_bytes() == b"weights"
    monkeypatch.setattr(download, "urlparse", lambda url: real(url.replace("http:", "https:") if "127" in url else url))
    with pytest.raises(HubError, match="stays on https"):
        hub.download_url_to_file(f"{url}/moved", str(tmp_path / "c"), progress=False)


def test_servers_that_are_silent_or_end_early(server, tmp_path, monkeypatch):
    url, _ = server
    monkeypatch.setattr(download, "TIMEOUT_S", 0.3)
    for path, words in (("silent", "no connection: timed out"), ("short", "3 bytes of 7")):
        with pytest.raises(HubError, match=words) as raised:
            hub.download_url_to_file(f"{url}/{path}", str(tmp_path / "a"), progress=False)
        assert "\n  fix:  " in str(raised.value) and not list(tmp_path.iterdir())


def test_code_is_not_run_from_a_directory_of_others(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_dir", str(tmp_path / "hub"))
    (tmp_path / "hub" / "owner_name_main").mkdir(parents=True)
    (tmp_path / "hub" / "owner_name_main" / "hubconf.py").write_text("def entry(): return 3")
    assert hub.load("owner/name", "entry", trust_repo=True) == 3
    (tmp_path / "hub").chmod(0o777)
    with pytest.raises(HubError, match="others may write to it"):
        hub.load("owner/name", "entry", trust_repo=True)
    with pytest.raises(HubError, match="the name '..'"):
        hub.load_state_dict_from_url("https://example.invalid/x/..")


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
