"""What goes wrong while models are served: requests that are none, clients that go away, files that are damaged."""

import contextlib
import json
import random
import re
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.request

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import ServingError
from sbpjax.serving import GenerationEngine, Repository, Server
from sbpjax.serving.openai import Endpoint

from .support import exported
from .test_generation import made
from .test_triton import BINARY, ask, free_port, needs_server, output_of, request_of

X = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
ODD = [
    None,
    True,
    -1,
    0,
    7,
    2**31,
    2**63,
    1e400,
    -0.0,
    "",
    "FP64",
    "BYTES",
    "x" * 3000,
    [],
    [[]],
    {},
    {"a": [1]},
    [2**62] * 2,
]


def changed(rnd, payload):
    """Return a request with one of its values, at any depth, made another or left out."""
    payload = json.loads(json.dumps(payload))
    at = payload
    while True:
        key = rnd.choice(list(at)) if isinstance(at, dict) else rnd.randrange(len(at))
        if isinstance(at[key], (dict, list)) and at[key] and rnd.random() < 0.7:
            at = at[key]
            continue
        if rnd.random() < 0.2:
            del at[key]
        else:
            at[key] = rnd.choice(ODD)
        return json.dumps(payload).encode()


def damaged(rnd, right):
    """Return the bytes of a request with some of them changed, or cut off, or more of them."""
    body = bytearray(right)
    kind = rnd.randrange(3)
    if kind == 0:
        for _ in range(rnd.randint(1, 6)):
            body[rnd.randrange(len(body))] = rnd.randrange(256)
    elif kind == 1:
        del body[rnd.randrange(len(body)) :]
    else:
        body[rnd.randrange(len(body)) : 0] = rnd.randbytes(rnd.randint(1, 40))
    return bytes(body)


def binary_request(rnd):
    """Return a request of Triton's binary extension whose sizes, shape or type do not fit, and its headers."""
    shape, kind, size = list(X.shape), "FP32", X.nbytes
    wrong = rnd.randrange(4)
    if wrong == 0:
        size = rnd.choice([-1, 0, 1, size - 1, size + 1, 2**31, 2**63 - 1, 2**64])
    elif wrong == 1:
        shape = rnd.choice([[], [2], [2, 6, 1], [-1, 6], [0, 6], [2**31, 6], [2**62, 6], [3, 6], [2, 5]])
    elif wrong == 2:
        kind = rnd.choice(["FP16", "FP64", "BYTES", "INT64", "BOOL", "BF16", "", "fp32"])
    given = {"name": "x", "shape": shape, "datatype": kind, "parameters": {"binary_data_size": size}}
    head = json.dumps({"inputs": [given]}).encode()
    header_length = (
        len(head) if wrong < 3 else rnd.choice([-5, 0, 1, len(head) - 1, len(head) + X.nbytes + 1, 10**9, "ten"])
    )
    return head + X.tobytes(), {"Inference-Header-Content-Length": str(header_length)}


def malformed(rnd, right):
    kind = rnd.randrange(3)
    if kind == 0:
        return binary_request(rnd)
    body = damaged(rnd, right) if kind == 1 else changed(rnd, json.loads(right))
    # Triton 2.51 itself aborts on a shape of more rows than there is memory for; the command starts it again.
    return (right[:-1] if re.search(rb'"shape": \[[^]]*\d{8}', body) else body), {}


@contextlib.contextmanager
def serving(folder, **options):
    ports = {f"{name}_port": free_port() for name in ("http", "grpc", "metrics")}
    repository = Repository(folder, **{k: options.pop(k) for k in ("queue_delay_us", "max_queue") if k in options})
    with Server(repository, binary=BINARY, **ports, **options) as server:
        yield server, f"http://127.0.0.1:{ports['http_port']}/v2", ports


class Traffic:
    """Right requests all the time, from several threads; their answers are looked at."""

    def __init__(self, url, wanted, threads=2):
        self.url, self.wanted, self.right, self.wrong, self._ends = url, wanted, 0, [], threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def _run(self):
        while not self._ends.is_set():
            status, answer = ask(self.url, request_of(X))
            if status == 200 and np.allclose(output_of(answer), self.wanted, **CLOSE):
                self.right += 1
            else:
                self.wrong.append((status, answer[:300]))

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join()


def go_away(rnd, port, body, path):
    """Send a part of a request, or all of it, and leave; sometimes with a reset."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        whole = head + body
        s.sendall(whole[: rnd.choice([len(head) // 2, len(head), len(head) + 5, len(whole)])])
        if rnd.random() < 0.5:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@needs_server
@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_triton_stays_and_answers_others_rightly(tmp_path, count):
    model = exported(tmp_path)
    rnd, right, wanted = random.Random(count), request_of(X), model(flow.tensor(X)).numpy()
    with serving(tmp_path) as (server, url, ports), Traffic(f"{url}/models/mlp/infer", wanted) as traffic:
        for i in range(count):
            body, headers = malformed(rnd, right)
            status, _ = ask(f"{url}/models/mlp/infer", body, headers)
            assert status in (200, 400, 404, 500, 501), (body, headers)
            if i % 10 == 0:
                go_away(rnd, ports["http_port"], right, "/v2/models/mlp/infer")
        assert server.is_running
    assert traffic.right > 10 and not traffic.wrong, traffic.wrong[:3]


def field(number, content):
    """Return a field of a protobuf message: a number's varint, or bytes with their length."""

    def varint(n):
        n %= 2**64
        return bytes([n]) if n < 128 else bytes([n % 128 + 128]) + varint(n >> 7)

    if isinstance(content, int):
        return varint(8 * number) + varint(content)
    return varint(8 * number + 2) + varint(len(content)) + content


def grpc_request(name=b"mlp", given=b"x", kind=b"FP32", shape=X.shape, raw=None):
    """Return a ``ModelInferRequest``."""
    tensor = field(1, given) + field(2, kind) + b"".join(field(3, n) for n in shape)
    return field(1, name) + field(5, tensor) + field(7, X.tobytes() if raw is None else raw)


def malformed_grpc(rnd):
    kind = rnd.randrange(6)
    if kind == 0:
        return damaged(rnd, grpc_request())
    if kind == 1:
        return grpc_request(kind=rnd.choice([b"FP16", b"FP64", b"BYTES", b"INT64", b"", b"fp32", b"\xff"]))
    if kind == 2:
        return grpc_request(shape=rnd.choice([[], [2], [2, 6, 1], [-1, 6], [0, 6], [3, 6], [2, 5], [2**62, 6]]))
    if kind == 3:
        return grpc_request(raw=rnd.randbytes(rnd.choice([0, 1, X.nbytes - 1, X.nbytes + 4, 100_000])))
    if kind == 4:
        return grpc_request(rnd.choice([b"", b"other", b"../mlp", b"\0", b"m" * 3000]))
    return grpc_request(given=rnd.choice([b"", b"y", b"\0", b"x" * 3000]))


@needs_server
@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_triton_s_grpc_stays_and_answers_others_rightly(tmp_path, count):
    grpc = pytest.importorskip("grpc", reason="needs grpcio")
    model = exported(tmp_path)
    rnd, wanted = random.Random(count), model(flow.tensor(X)).numpy()
    with serving(tmp_path) as (server, url, ports), Traffic(f"{url}/models/mlp/infer", wanted) as traffic:
        with grpc.insecure_channel(f"127.0.0.1:{ports['grpc_port']}") as channel:
            infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            answers, errors = [], set()
            for i in range(count):
                try:
                    infer(malformed_grpc(rnd), timeout=30)
                except grpc.RpcError as error:
                    errors.add(error.code().name)
                # No call is cancelled: Triton 2.51 itself may end by a signal then; the command starts it again.
                if i % 10 == 0:
                    answers.append(infer(grpc_request(), timeout=30))
        assert server.is_running
    raw = wanted.astype(np.float32)
    for answer in answers:  # its last field: ``raw_output_contents``
        assert answer[-raw.nbytes - 2 : -raw.nbytes] == field(6, raw.tobytes())[:2]
        np.testing.assert_allclose(np.frombuffer(answer[-raw.nbytes :], np.float32).reshape(raw.shape), raw, **CLOSE)
    assert errors <= {"INVALID_ARGUMENT", "NOT_FOUND", "INTERNAL", "UNIMPLEMENTED"} and "INVALID_ARGUMENT" in errors
    assert traffic.right > 10 and not traffic.wrong, traffic.wrong[:3]


@needs_server
def test_files_that_are_damaged_and_models_that_come_and_go_under_traffic(tmp_path):
    wanted = exported(tmp_path)(flow.tensor(X)).numpy()
    exported(tmp_path, "other")
    weights = tmp_path / "mlp/1/model/weights.safetensors"
    whole = weights.read_bytes()
    with serving(tmp_path, control=True) as (server, url, _):
        load, unload = (f"{url}/repository/models/other/{what}" for what in ("load", "unload"))
        with Traffic(f"{url}/models/mlp/infer", wanted) as traffic:
            weights.write_bytes(b"\xff" * len(whole))  # in place, as a copy that went wrong does
            assert ask(unload, b"{}")[0] == 200
            end = time.monotonic() + 10
            while ask(f"{url}/models/other/infer", request_of(X))[0] == 200 and time.monotonic() < end:
                time.sleep(0.05)
            assert ask(f"{url}/models/other/infer", request_of(X))[0] >= 400
            assert ask(load, b"{}")[0] == 200
            assert ask(f"{url}/models/other/infer", request_of(X))[0] == 200
        assert traffic.right > 10 and not traffic.wrong, traffic.wrong[:3]
        # Loaded anew it is what the file says: an error.
        status, answer = ask(f"{url}/repository/models/mlp/load", b"{}")
        assert status == 400 and b"weights.safetensors" in answer, answer
        weights.write_bytes(whole)
        assert ask(f"{url}/repository/models/mlp/load", b"{}")[0] == 200
        assert np.allclose(output_of(ask(f"{url}/models/mlp/infer", request_of(X))[1]), wanted, **CLOSE)
        assert ask(f"{url}/repository/models/..%2F..%2Fetc/load", b"{}")[0] >= 400
        assert server.is_running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", made, *subject]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


@needs_server
def test_triton_asks_for_a_token_and_offers_tls(tmp_path, certificate):
    exported(tmp_path)
    cert, key = certificate
    with serving(tmp_path, token="secret-token", certificate=cert, private_key=key) as (_, url, ports):
        infer = f"{url}/models/mlp/infer"
        assert ask(infer, request_of(X))[0] == 403
        assert ask(infer, request_of(X), {"authorization": "Bearer other-token"})[0] == 403
        assert ask(f"{url}/repository/index", b"")[0] == 403
        assert ask(infer, request_of(X), {"authorization": "Bearer secret-token"})[0] == 200
        assert ask(f"{url}/health/ready")[0] == 200
        trust = ssl.create_default_context(cafile=str(cert))
        trust.set_alpn_protocols(["h2"])
        with socket.create_connection(("127.0.0.1", ports["grpc_port"]), timeout=10) as plain:
            with trust.wrap_socket(plain, server_hostname="localhost") as s:
                assert s.selected_alpn_protocol() == "h2"


@pytest.mark.parametrize(
    "option, expected",
    [
        ({"token": "short"}, "a token of 5 characters"),
        ({"token": "two lines\nor more"}, "a token of 17 characters"),
        ({"certificate": "cert.pem"}, "one of certificate and private_key"),
        ({"certificate": "no.pem", "private_key": "no.key"}, "no file 'no.pem'"),
    ],
)
def test_wrong_doors(tmp_path, monkeypatch, option, expected):
    exported(tmp_path)
    monkeypatch.setattr("sbpjax.serving.triton.find_server", lambda path: path)
    with pytest.raises(ServingError, match=rf"(?s)seen: .*{expected}.*rule: .*fix: "):
        Server(Repository(tmp_path), **option)


# -- the endpoint of generation, over real sockets ---------------------------------------------------------------------


@contextlib.contextmanager
def endpoint(app, **options):
    uvicorn = pytest.importorskip("uvicorn", reason="needs the extra serve")
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical", lifespan="off", **options))
    thread = threading.Thread(target=server.run)
    thread.start()
    end = time.monotonic() + 20
    while not server.started and time.monotonic() < end:
        time.sleep(0.02)
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def engine():
    with GenerationEngine(made("gpt2"), rows=2, blocks=4, block=16, chunk=2, longest=16, max_queue=64) as engine:
        yield engine


def idle(engine):
    end = time.monotonic() + 20
    while engine.statistics()["running"] + engine.statistics()["waiting"] and time.monotonic() < end:
        time.sleep(0.02)
    return engine.statistics()["blocks_used"] == 0


@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_the_endpoint_stays_and_answers_others_rightly(engine, count):
    pytest.importorskip("starlette", reason="needs the extra serve")
    rnd, payload = random.Random(count), {"model": "gpt", "prompt": [5, 6], "max_tokens": 3, "temperature": 0, "n": 1}
    wanted = list(engine.submit([5, 6], 3))
    right = json.dumps(payload).encode()
    with endpoint(Endpoint(engine, "gpt")) as port:
        url, path = f"http://127.0.0.1:{port}/v1/completions", "/v1/completions"
        for i in range(count):
            body = damaged(rnd, right) if i % 2 else changed(rnd, payload)
            assert ask(url, body)[0] in (200, 400, 404, 413, 429), body
            if i % 10 == 0:
                stream = json.dumps({**payload, "max_tokens": 14, "stream": rnd.random() < 0.5}).encode()
                go_away(rnd, port, stream, path)
                status, answer = ask(url, right)
                assert status == 200 and json.loads(answer)["choices"][0]["tokens"] == wanted
        assert idle(engine)
        assert ask(url, right)[0] == 200


def test_a_client_that_sends_slowly_or_asks_for_too_much_time(engine):
    pytest.importorskip("starlette", reason="needs the extra serve")
    payload = json.dumps({"prompt": [5, 6], "max_tokens": 3}).encode()
    with endpoint(Endpoint(engine, "gpt", read_s=0.3, most_bytes=1000)) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            assert b" 408 " in s.recv(100)
        assert ask(f"http://127.0.0.1:{port}/v1/completions", b" " * 2000)[0] == 413
        assert ask(f"http://127.0.0.1:{port}/v1/completions", payload)[0] == 200
    write, engine._write = engine._write, lambda sequences: (time.sleep(0.1), write(sequences))
    try:
        with endpoint(Endpoint(engine, "gpt", timeout_s=0.2)) as port:
            url = f"http://127.0.0.1:{port}/v1/completions"
            assert ask(url, json.dumps({"prompt": [5], "max_tokens": 14}).encode())[0] == 504
            stream = ask(url, json.dumps({"prompt": [5], "max_tokens": 14, "stream": True}).encode())
            assert stream[0] == 200 and stream[1].count(b"data: ") < 12
    finally:
        engine._write = write
    assert idle(engine)


def test_the_endpoint_by_tls(engine, certificate):
    pytest.importorskip("starlette", reason="needs the extra serve")
    cert, key = certificate
    with endpoint(Endpoint(engine, "gpt"), ssl_certfile=cert, ssl_keyfile=key) as port:
        trust = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(f"https://localhost:{port}/health", context=trust, timeout=10) as answer:
            assert answer.status == 200
