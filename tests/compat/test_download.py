"""Downloads from servers that break off, lie, are slow or send too much; resuming, locks, offline mode, the bar."""

import hashlib
import http.server
import pickle
import threading
import time

import numpy as np
import pytest

import sbpjax as flow
from sbpjax._core.compat import download, hub
from sbpjax.errors import HubError

BODY = bytes(range(256)) * 4000  # 1 MB
HASH = hashlib.sha256(BODY).hexdigest()


class Server(http.server.BaseHTTPRequestHandler):
    """Serves BODY in the way that the first part of a path says; keeps what it was asked."""

    requested: list = []
    bodies: dict = {}

    def do_GET(self):
        way, place = self.path.split("/")[1], self.headers.get("Range")
        Server.requested.append((way, place, self.headers.get("If-Range")))
        body = Server.bodies.get(self.path, BODY)
        start = int(place[6:-1]) if place and way != "ranges-unknown" else 0
        if start and way == "changed" and self.headers.get("If-Range") != '"2"':
            start = 0
        shift = 100 if start and way == "elsewhere" else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start + shift}-{len(body) - 1}/{len(body)}")
        if way not in ("nameless", "liar"):
            self.send_header("ETag", '"2"' if way == "changed" else '"1"')
        if way != "endless":
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self._send(way, body[start:])

    def _send(self, way, body):
        if way in ("breaks", "nameless", "elsewhere", "changed"):
            body = body[: max(1, len(body) // 2)]
        if way == "long":
            body += b"more than was announced"
        if way == "slow":
            for at in range(0, len(body), len(body) // 8):
                self.wfile.write(body[at : at + len(body) // 8])
                time.sleep(0.05)
        else:
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def url(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(Server, "requested", [])
    monkeypatch.setattr(Server, "bodies", {})
    monkeypatch.setattr(download, "PAUSE_S", 0.01)
    for name in ("http_proxy", "HTTP_PROXY", download.ENV_OFFLINE):
        monkeypatch.delenv(name, raising=False)
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def fetch(url, path, hash_prefix=None):
    download.download_url_to_file(url, str(path), hash_prefix, progress=False)


def test_a_server_that_breaks_off_is_asked_for_the_rest(url, tmp_path):
    path = tmp_path / "w"
    with pytest.raises(HubError, match="bytes stay, and the next call goes on"):
        fetch(f"{url}/breaks", path, HASH)
    half = len(BODY) // 2
    assert [place for _, place, _ in Server.requested[:2]] == [None, f"bytes={half}-"] and Server.requested[1][
        2
    ] == '"1"'
    assert len(Server.requested) == download.ATTEMPTS and not path.exists()
    there = (tmp_path / "w.part").stat().st_size
    Server.requested.clear()
    fetch(f"{url}/good", path, HASH)  # the same file, from a server in good order
    assert Server.requested == [("good", f"bytes={there}-", '"1"')]
    assert path.read_bytes() == BODY and [one.name for one in tmp_path.iterdir()] == ["w"]


def test_what_has_come_is_not_mixed_with_another_file(url, tmp_path):
    for way in ("breaks", "elsewhere"):
        with pytest.raises(HubError):
            fetch(f"{url}/{way}", tmp_path / "w", HASH)
    with pytest.raises(HubError):
        fetch(f"{url}/changed", tmp_path / "w")  # another version now: from the beginning
    fetch(f"{url}/ranges-unknown", tmp_path / "w", HASH)
    assert (tmp_path / "w").read_bytes() == BODY
    with pytest.raises(HubError, match="512000 bytes of 1024000"):
        fetch(f"{url}/nameless", tmp_path / "x")
    assert not (tmp_path / "x.part").exists()  # no version and no hash: nobody could say that it goes together


def test_lies_about_the_checksum(url, tmp_path):
    with pytest.raises(HubError, match='invalid hash value \\(expected "00000000"') as raised:
        fetch(f"{url}/liar", tmp_path / "w", "00000000")
    assert "\n  fix:  try again" in str(raised.value) and not list(tmp_path.iterdir())
    fetch(f"{url}/liar", tmp_path / "w", HASH[:8])
    assert (tmp_path / "w").read_bytes() == BODY


def test_bodies_longer_than_announced_and_slow_ones(url, tmp_path):
    fetch(f"{url}/long", tmp_path / "a", HASH)  # what is behind the announced length is not read
    fetch(f"{url}/slow", tmp_path / "b", HASH)
    fetch(f"{url}/endless", tmp_path / "c", HASH)
    assert {(tmp_path / name).read_bytes() == BODY for name in "abc"} == {True}


def test_others_wait_and_find_the_file_done(url, tmp_path):
    threads = [threading.Thread(target=fetch, args=(f"{url}/slow", tmp_path / "w")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Server.requested) == 1
    assert (tmp_path / "w").read_bytes() == BODY and [one.name for one in tmp_path.iterdir()] == ["w"]


def test_offline(url, tmp_path, monkeypatch):
    monkeypatch.setenv(download.ENV_OFFLINE, "1")
    monkeypatch.setattr(hub, "_dir", str(tmp_path))
    with pytest.raises(HubError, match="files come from the cache alone") as raised:
        hub.load_state_dict_from_url(f"{url}/good/w.pth")
    assert f"put the file at {tmp_path}/checkpoints/w.pth, or unset SBPJAX_HUB_OFFLINE" in str(raised.value)
    flow.save({"w": flow.ones(2)}, tmp_path / "checkpoints" / "w.pth")
    assert hub.load_state_dict_from_url(f"{url}/good/w.pth")["w"].tolist() == [1, 1] and not Server.requested


@pytest.mark.parametrize("kind", ["safetensors", "pth"])
def test_state_dicts_by_url(url, tmp_path, monkeypatch, kind):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    if kind == "pth":
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        torch.save({"w": torch.tensor(values)}, tmp_path / "file")
    else:
        from safetensors.numpy import save_file

        save_file({"w": values}, tmp_path / "file")
    body = (tmp_path / "file").read_bytes()
    name = f"tiny-{hashlib.sha256(body).hexdigest()[:8]}.{kind}"
    Server.bodies[f"/good/{name}"] = body
    monkeypatch.setattr(hub, "_dir", str(tmp_path / "hub"))
    for _ in range(2):
        state = hub.load_state_dict_from_url(f"{url}/good/{name}", check_hash=True, progress=False)
        assert (state["w"].numpy() == values).all()
    assert len(Server.requested) == 1
    with pytest.raises(HubError, match="a name like resnet18-f37072fd.pth"):
        hub.load_state_dict_from_url(f"{url}/good/w.{kind}", check_hash=True)


def test_code_in_a_file_is_not_run(url, tmp_path, monkeypatch):
    class Bad:
        def __reduce__(self):
            return (exec, ("raise SystemExit(7)",))

    Server.bodies["/good/bad.pth"] = pickle.dumps({"w": Bad()})
    monkeypatch.setattr(hub, "_dir", str(tmp_path / "hub"))
    with pytest.raises(Exception, match="exec|pickle|format|file"):
        hub.load_state_dict_from_url(f"{url}/good/bad.pth", progress=False)


def test_the_bar():
    bar = download.Bar(2_000_000, 0)
    assert bar.text(1_000_000, 2.0) == "[###############               ] 1.0 of 2.0 MB, 0.5 MB/s"
    assert download.Bar(None, 0).text(1_000_000, 1.0) == "1.0 MB, 1.0 MB/s"
