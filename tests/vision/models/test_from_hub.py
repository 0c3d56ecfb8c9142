"""Models of a hub: fetched once, from servers that break off, lie and are slow; offline; what is not of this layout."""

import hashlib
import http.server
import json
import threading
import time

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import vision
from sbpjax.errors import CheckpointError, ConfigError, HubError

file_download = pytest.importorskip("huggingface_hub.file_download", reason="huggingface_hub is not installed")
SMALL = {"depths": (1, 1, 1, 1), "width": 8}
CONFIG = {"architecture": "resnet18", "num_classes": 4, "pretrained_cfg": {"num_classes": 4}}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Server(http.server.BaseHTTPRequestHandler):
    """Serves repositories ``owner/WAY`` as a hub does, in the way that the name says; keeps what it was asked."""

    files: dict = {}
    requested: list = []

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        _, _, way, _, _, name = self.path.split("/")
        place = self.headers.get("Range")
        Server.requested.append((self.command, way, name, place))
        body = Server.files.get((way, name), Server.files.get(("any", name)))
        if body is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            return
        etag = hashlib.sha256(body).hexdigest()
        if way == "liar" and with_body:
            body = bytes(len(body))
        start = int(place[6:].split("-")[0]) if place else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if with_body:
            self.send(way, body[start:], name)

    def send(self, way, body, name):
        if way == "slow":
            for at in range(0, len(body), len(body) // 4 + 1):
                self.wfile.write(body[at : at + len(body) // 4 + 1])
                time.sleep(0.02)
        elif way == "ends" or (way == "breaks" and len(bytes_requested(way, name)) < 3):
            self.wfile.write(body[: len(body) // 2])
        else:
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Return the bytes of a file of weights, of a model with 4 classes."""
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    flow.checkpoint.save_safetensors(vision.create_model("resnet18", num_classes=4, **SMALL).state_dict(), path)
    return path.read_bytes()


@pytest.fixture
def options(weights, tmp_path, monkeypatch):
    """Serve, and return the options that fetch from there."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    files = {("any", "config.json"): json.dumps(CONFIG).encode(), ("any", "model.safetensors"): weights}
    monkeypatch.setattr(Server, "files", files)
    monkeypatch.setattr(Server, "requested", [])
    monkeypatch.setattr(file_download.time, "sleep", lambda seconds, wait=time.sleep: wait(min(seconds, 0.02)))
    for name in ("http_proxy", "HTTP_PROXY", "SBPJAX_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    yield {"endpoint": f"http://127.0.0.1:{server.server_port}", "cache_dir": tmp_path, **SMALL}
    server.shutdown()
    server.server_close()


def bytes_requested(way, name="model.safetensors"):
    return [place for *requested, place in Server.requested if requested == ["GET", way, name]]


@pytest.mark.parametrize("way", ["good", "slow", "breaks"])
def test_a_model_comes_once(way, options):
    model = vision.from_hub(f"owner/{way}", **options)
    assert model.fc.weight.shape == (4, 64)
    assert len(bytes_requested(way)) == (3 if way == "breaks" else 1)
    Server.requested.clear()
    again = vision.from_hub(f"owner/{way}", **options)
    assert not bytes_requested(way)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[name].numpy(), value.numpy())


def test_another_number_of_classes(options):
    assert vision.from_hub("owner/good", num_classes=3, **options).fc.weight.shape == (3, 64)
    assert isinstance(vision.from_hub("owner/good", num_classes=0, **options).fc, flow.nn.Identity)


def test_offline(options, monkeypatch):
    monkeypatch.setenv("SBPJAX_HUB_OFFLINE", "1")
    with pytest.raises(HubError, match=r"offline mode, and no config.json in the cache[\s\S]*unset SBPJAX_HUB_OFFLINE"):
        vision.from_hub("owner/good", **options)
    assert not Server.requested
    monkeypatch.delenv("SBPJAX_HUB_OFFLINE")
    vision.from_hub("owner/good", **options)
    Server.requested.clear()
    monkeypatch.setenv("SBPJAX_HUB_OFFLINE", "1")
    assert vision.from_hub("owner/good", **options).fc.weight.shape == (4, 64) and not Server.requested


def test_a_server_that_lies_or_ends_early_leaves_nothing(options, tmp_path):
    Server.files["liar", "config.json"] = Server.files["any", "config.json"]
    with pytest.raises(HubError, match=r"with the SHA-256 [0-9a-f]{12}…, in place of") as raised:
        vision.from_hub("owner/liar", **options)
    assert "call again; it was removed" in str(raised.value)
    with pytest.raises(HubError, match="its files come whole"):
        vision.from_hub("owner/ends", **options)
    assert not list(tmp_path.rglob("model.safetensors")) and not list(tmp_path.rglob("*.incomplete"))


def test_what_does_not_fit(options):
    with pytest.raises(HubError, match=r"no connection[\s\S]*HF_ENDPOINT"):
        vision.from_hub("owner/good", **options | {"endpoint": "http://127.0.0.1:9"})
    Server.files["other", "config.json"] = b'{"model_type": "vit", "hidden_size": 8}'
    with pytest.raises(HubError, match=r"of the type 'vit'[\s\S]*names an architecture"):
        vision.from_hub("owner/other", **options)
    assert vision.from_hub("owner/other", architecture="resnet18", **options | {"num_classes": 4}) is not None
    Server.files["broken", "config.json"] = b"{"
    with pytest.raises(HubError, match="config.json is a JSON object"):
        vision.from_hub("owner/broken", **options)
    wrong = [("pretrained_cfg", [1]), ("architecture", 5), ("num_classes", "4"), ("num_classes", -1)]
    for i, (name, value) in enumerate(wrong):
        Server.files[f"wrong{i}", "config.json"] = json.dumps(CONFIG | {name: value}).encode()
        with pytest.raises(HubError, match=f"{name}=.*\n.*{name} in config.json is of type"):
            vision.from_hub(f"owner/wrong{i}", **options)
    Server.files["deep", "config.json"] = b"[" * 100_000
    with pytest.raises(HubError, match="config.json is a JSON object"):
        vision.from_hub("owner/deep", **options)
    Server.files["unknown", "config.json"] = b'{"architecture": "resnet19", "num_classes": 4}'
    with pytest.raises(ConfigError, match="near: resnet18"):
        vision.from_hub("owner/unknown", **options)
    Server.files["larger", "config.json"] = b'{"architecture": "resnet34", "num_classes": 4}'
    with pytest.raises(CheckpointError, match="no layer1"):
        vision.from_hub("owner/larger", **options | {"depths": (2, 1, 1, 1)})
    del Server.files["any", "model.safetensors"]
    Server.files["empty", "config.json"] = Server.files["any", "config.json"]
    with pytest.raises(HubError, match=r"no model.safetensors in it[\s\S]*pytorch_model.bin"):
        vision.from_hub("owner/empty", **options)
