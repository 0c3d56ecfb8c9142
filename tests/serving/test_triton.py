"""A real Triton server, where there is one: answers, errors, batches; and what is said where there is none."""

import json
import random
import socket
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import ServingError
from sbpjax.serving import Repository, Server, cli, find_server

from .support import exported

try:
    BINARY = find_server()
except ServingError:
    BINARY = None
needs_server = pytest.mark.skipif(BINARY is None, reason="needs tritonserver: SBPJAX_TRITONSERVER, or nvidia-pytriton")
REQUESTS = 300


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(url, body=None, headers=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers or {}), timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def request_of(x):
    given = {"name": "x", "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()}
    return json.dumps({"inputs": [given]}).encode()


def output_of(answer):
    (out,) = json.loads(answer)["outputs"]
    return np.array(out["data"], np.float32).reshape(out["shape"])


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    model = exported(folder)
    ports = {f"{name}_port": free_port() for name in ("http", "grpc", "metrics")}
    with Server(Repository(folder, queue_delay_us=5000), binary=BINARY, **ports) as server:
        yield server, model, f"http://127.0.0.1:{ports['http_port']}/v2/models/mlp"


@needs_server
def test_right_answers_batches_and_statistics(served):
    _, model, url = served
    x = np.random.default_rng(0).standard_normal((3, 6)).astype(np.float32)
    wanted = model(flow.tensor(x)).numpy()
    metadata = json.loads(ask(url)[1])
    assert metadata["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 6]}]

    def many(found):
        for _ in range(20):
            status, answer = ask(f"{url}/infer", request_of(x))
            found.append(status == 200 and np.allclose(output_of(answer), wanted, rtol=1e-5, atol=1e-6))

    found = []
    threads = [threading.Thread(target=many, args=(found,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160 and all(found)
    stats = json.loads(ask(f"{url}/stats")[1])["model_stats"][0]
    assert max(int(batch["batch_size"]) for batch in stats["batch_stats"]) > 3


@needs_server
def test_malformed_requests_get_errors_and_the_server_stays(served):
    server, model, url = served
    rnd, x = random.Random(0), np.ones((2, 6), np.float32)
    right = request_of(x)
    for i in range(REQUESTS):
        body = bytearray(right)
        if i % 3 == 0:
            for _ in range(rnd.randint(1, 5)):
                body[rnd.randrange(len(body))] = rnd.randrange(256)
        elif i % 3 == 1:
            metadata = json.loads(right)
            metadata["inputs"][0][rnd.choice(["shape", "datatype", "name", "data"])] = rnd.choice(
                [[-1, 6], [2**62, 2**62], "FP64", "", None, [], [1e400], {"a": 1}, [2, 5], "BYTES", 7]
            )
            body = json.dumps(metadata).encode()
        else:
            body = body[: rnd.randrange(len(body))]
        headers = {"Inference-Header-Content-Length": str(rnd.randint(-5, 10**6))} if i % 5 == 0 else {}
        assert ask(f"{url}/infer", bytes(body), headers)[0] in (200, 400, 404, 500)
    assert server.is_running
    assert np.allclose(output_of(ask(f"{url}/infer", right)[1]), model(flow.tensor(x)).numpy(), rtol=1e-5, atol=1e-6)


@needs_server
def test_a_model_that_does_not_load_says_why(tmp_path):
    exported(tmp_path)
    (tmp_path / "mlp/1/model/weights.safetensors").write_bytes(b"damaged")
    ports = {f"{name}_port": free_port() for name in ("http", "grpc", "metrics")}
    with pytest.raises(ServingError, match=r"(?s)tritonserver ended.*weights.safetensors.*fix: "):
        Server(Repository(tmp_path), binary=BINARY, **ports).__enter__()


def test_a_server_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.delenv("SBPJAX_TRITONSERVER", raising=False)
    with pytest.raises(ServingError, match=r"(?s)no tritonserver at .*fix: .*pip install --no-deps nvidia-pytriton"):
        find_server(tmp_path)


def test_a_server_that_was_ended_by_a_signal_starts_again(tmp_path, monkeypatch, capsys):
    exported(tmp_path)
    statuses = [-6, -11, 0]

    class Stand:
        def __init__(self, *args, **options):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def wait(self):
            return statuses.pop(0)

    monkeypatch.setattr(cli, "Server", Stand)
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        cli.main([str(tmp_path)])
    assert ended.value.code == 0 and not statuses
    assert "ended by signal 6; it starts again" in capsys.readouterr().out


def test_the_command_checks_a_repository(tmp_path, capsys):
    exported(tmp_path)
    cli.main([str(tmp_path), "--check"])
    assert 'name: "mlp"' in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"(?s)ServingError: serving .*no such folder"):
        cli.main([str(tmp_path / "nothing")])
