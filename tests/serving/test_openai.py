"""The HTTP endpoint: answers, streams, and the error of the protocol for whatever is wrong."""

import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sbpjax.errors import ServingError
from sbpjax.models import save_pretrained
from sbpjax.serving import GenerationEngine
from sbpjax.serving.openai import Endpoint, main
from tests.serving.test_generation import made

pytest.importorskip("starlette", reason="needs the extra serve")
ROOT = Path(__file__).parents[2]


def encode(text):
    return [ord(c) % 61 for c in text]


def decode(tokens):
    return "".join(chr(97 + t % 26) for t in tokens)


@pytest.fixture(scope="module")
def engine():
    with GenerationEngine(made("gpt2"), rows=2, blocks=4, block=16, chunk=2, longest=16, max_queue=8) as engine:
        yield engine


def ask(app, path="/v1/completions", body=None, method="POST", headers=()):
    """Send a request to an ASGI application, and return the status and the body."""
    requested, answers = [], []

    async def receive():
        if not requested:
            requested.append(True)
            return {"type": "http.request", "body": body or b"", "more_body": False}
        await asyncio.Event().wait()  # the client stays

    async def send(message):
        answers.append(message)

    scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1"}
    scope |= {"method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
    scope |= {"scheme": "http", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
    scope["headers"] = [(k.encode(), v.encode()) for k, v in headers]
    asyncio.run(app(scope, receive, send))
    text = b"".join(a.get("body", b"") for a in answers[1:])
    return answers[0]["status"], text


def post(app, payload, **options):
    status, text = ask(app, body=json.dumps(payload).encode(), **options)
    return status, json.loads(text)


@pytest.fixture
def app(engine):
    return Endpoint(engine, "gpt", encode=encode, decode=decode)


def test_tokens_and_text(app, engine):
    wanted = list(engine.submit([5, 6], 4))
    status, found = post(app, {"model": "gpt", "prompt": [5, 6], "max_tokens": 4})
    assert status == 200 and found["choices"][0]["tokens"] == wanted and found["choices"][0]["text"] == decode(wanted)
    assert found["usage"] == {"prompt_tokens": 2, "completion_tokens": 4, "total_tokens": 6}
    assert found["choices"][0]["finish_reason"] == "length"
    assert post(app, {"prompt": "ab", "max_tokens": 2})[1]["usage"]["prompt_tokens"] == 2


def test_a_stream_is_the_same_in_parts(app, engine):
    wanted = list(engine.submit([5, 6], 4))
    body = json.dumps({"prompt": [5, 6], "max_tokens": 4, "stream": True}).encode()
    status, text = ask(app, body=body)
    lines = [line.removeprefix("data: ") for line in text.decode().split("\n\n") if line]
    assert status == 200 and lines[-1] == "[DONE]"
    parts = [json.loads(line)["choices"][0] for line in lines[:-1]]
    assert [token for part in parts for token in part["tokens"]] == wanted
    assert "".join(part["text"] for part in parts) == decode(wanted)
    assert [part["finish_reason"] for part in parts] == [None] * 4 + ["length"]


def test_the_end_token_is_not_part_of_the_text(engine):
    tokens = list(engine.submit([5, 6], 4))
    app = Endpoint(engine, "gpt", decode=decode, end=tokens[1])
    _, found = post(app, {"prompt": [5, 6], "max_tokens": 4})
    assert found["choices"][0]["finish_reason"] == "stop"
    assert found["choices"][0]["text"] == decode(tokens[: tokens.index(tokens[1])])


@pytest.mark.parametrize(
    "payload, status, expected",
    [
        ({"max_tokens": 2}, 400, "with a prompt"),
        ([1], 400, "an object"),
        ({"prompt": []}, 400, "one list of token numbers"),
        ({"prompt": [1.5]}, 400, "one list of token numbers"),
        ({"prompt": [True]}, 400, "one list of token numbers"),
        ({"prompt": [99]}, 400, "tokens from 99"),
        ({"prompt": [1], "max_tokens": 0}, 400, "max_tokens is a whole number"),
        ({"prompt": [1], "max_tokens": 10**9}, 400, "at most 16 tokens"),
        ({"prompt": [1], "temperature": "hot"}, 400, "temperature is a number"),
        ({"prompt": [1], "n": 2}, 400, "n is 1"),
        ({"prompt": [1], "best_of": 2}, 400, "unknown fields: best_of"),
        ({"prompt": [1], "model": "other"}, 404, "the model is gpt"),
        ({"prompt": [1], "stream": 1}, 400, "stream is a bool"),
    ],
)
def test_wrong_requests(app, payload, status, expected):
    found, error = post(app, payload)
    assert found == status and expected in error["error"]["message"], error


def test_bodies_that_are_no_requests_never_end_the_engine(app, engine):
    rnd = random.Random(0)
    right = json.dumps({"prompt": [5, 6], "max_tokens": 2}).encode()
    for _ in range(200):
        body = bytearray(right)
        for _ in range(rnd.randint(1, 6)):
            body[rnd.randrange(len(body))] = rnd.randrange(256)
        assert ask(app, body=bytes(body))[0] in (200, 400, 404)
    assert ask(app, body=b"[" * 200_000)[0] == 400
    assert ask(app, body=b" " * (5 * 2**20))[0] == 413
    assert ask(app, body=right)[0] == 200
    assert engine.statistics()["blocks_used"] == 0


def test_a_token_is_asked_for(engine):
    app = Endpoint(engine, "gpt", token="secret")
    payload = {"prompt": [1], "max_tokens": 1}
    assert post(app, payload)[0] == 401
    assert post(app, payload, headers=[("authorization", "Bearer secret")])[0] == 200
    assert ask(app, "/v1/models", method="GET")[0] == 401
    assert ask(app, "/health", method="GET")[0] == 200


def test_what_can_be_asked_of_the_engine(app):
    assert json.loads(ask(app, "/v1/models", method="GET")[1])["data"][0]["id"] == "gpt"
    assert b"sbpjax_generation_cache_bytes" in ask(app, "/metrics", method="GET")[1]
    assert ask(app, "/v1/nothing", method="GET")[0] == 404


def test_text_needs_a_tokenizer(engine):
    status, error = post(Endpoint(engine, "gpt"), {"prompt": "ab"})
    assert status == 400 and "no tokenizer" in error["error"]["message"]
    prompt = json.loads(re.search(r"such as (\[.*\])$", error["error"]["message"])[1])
    assert post(Endpoint(engine, "gpt"), {"prompt": prompt, "max_tokens": 1})[0] == 200


def test_an_engine_that_ended(engine):
    stopped = GenerationEngine(made("gpt2"), rows=1, blocks=9, block=2, chunk=4, longest=16)
    assert post(Endpoint(stopped, "gpt"), {"prompt": [1]})[0] == 400


def test_a_missing_package_says_how_to_get_it(engine, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(ServingError, match=r'(?s)starlette.*pip install "starlette>='):
        Endpoint(engine, "gpt")


@pytest.mark.parametrize("content", [None, b"{}", b"\xff"])
def test_a_tokenizer_that_cannot_be_read_ends_the_command_in_words(content, tmp_path):
    save_pretrained(made("gpt2"), tmp_path)
    if content is not None:
        (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(SystemExit, match=r"(?s)DataError: read_tokenizer.*tokenizer.json.*fix: "):
        main([str(tmp_path), "--tokenizer", str(tmp_path / "tokenizer.json")])


def test_a_port_in_use_ends_the_command_before_it_says_that_it_answers(tmp_path, capfd):
    save_pretrained(made("gpt2"), tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(SystemExit) as ended:
        main([str(tmp_path), "--port", str(other.getsockname()[1])])
    assert "already in use" in ended.value.code and "--port " in ended.value.code
    assert "answers at" not in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_commands_of_the_page_work_in_their_order_and_so_does_the_printed_one(tmp_path):
    pytest.importorskip("tokenizers", reason="needs the extra train")
    page = (ROOT / "docs" / "how_to" / "serve.md").read_text().partition("## Text over HTTP")[2]
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:1]
    shell = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=shell, check=True, timeout=120)
    commands = re.findall(r"```bash\n(.*?)\n(curl .*?)\n```", page)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    found = []
    for start, request in commands:
        few = ["--port", port, "--rows", "1", "--longest", "32"]  # fewer programs: a server is ready within seconds
        with subprocess.Popen(
            [*start.split(), *few], cwd=tmp_path, env=shell, stdout=subprocess.PIPE, text=True
        ) as server:
            ready = re.match(r"my-llama answers at \S+ until Ctrl-C, for example: (curl .*)", server.stdout.readline())
            for line in (request.replace("8080", port), ready[1]):
                done = subprocess.run(["bash", "-c", line], env=shell, capture_output=True, text=True, timeout=120)
                found.append(done.stdout)
            server.send_signal(signal.SIGINT)
            assert server.stdout.read() == "my-llama ends: all requests are answered\n"
        assert server.returncode == 0
    assert len(json.loads(found[0])["choices"][0]["tokens"]) == 20
    assert found[2].endswith("data: [DONE]\n\n") and found[2].count("data: ") == 22
    assert [json.loads(found[i])["usage"]["completion_tokens"] for i in (1, 3)] == [16, 16]
