"""The endpoint's command under load and misuse: silent connections, many clients, long texts, cancelled requests."""

import concurrent.futures
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time

import pytest

from sbpjax.models import save_pretrained
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.serving import GenerationEngine
from sbpjax.serving.http import has_token, limited_protocol, raise_file_limit
from sbpjax.serving.openai import Endpoint

from .test_faults import endpoint
from .test_generation import made
from .test_triton import ask, free_port

pytest.importorskip("starlette", reason="needs the extra serve")
PROMPT_S = 2.0  # every other client is answered within this time
PAYLOAD = {"prompt": "a b", "max_tokens": 4}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The port of `python -m sbpjax.serving.openai` with a small GPT-2, a tokenizer and 64 places in the queue."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder, port = tmp_path_factory.mktemp("gpt"), free_port()
    save_pretrained(GPT2(GPT2Config(vocab_size=61, n_positions=2048, n_embd=16, n_layer=1, n_head=2)), folder)
    tokenizer = Tokenizer(models.BPE({chr(97 + i): i for i in range(26)} | {" ": 26}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "isolated")
    tokenizer.save(str(folder / "tokenizer.json"))
    command = [sys.executable, "-m", "sbpjax.serving.openai", str(folder), "--tokenizer", f"{folder}/tokenizer.json"]
    command += ["--port", str(port), "--max-queue", "64", "--rows", "4", "--blocks", "600", "--max-connections", "400"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 240
        while process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(OSError):
                if ask(f"http://127.0.0.1:{port}/health")[0] == 200:
                    break
            time.sleep(0.2)
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
        yield port
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
    finally:
        process.terminate()
        status = process.wait(40)
    log = (folder / "log").read_text()
    assert status == 0 and "answers at http://127.0.0.1" in log and log.endswith("ends: all requests are answered\n")


def timed(port, payload=None, path="/v1/completions"):
    """Return the status, the answer and the seconds of a request."""
    start = time.monotonic()
    try:
        status, text = ask(f"http://127.0.0.1:{port}{path}", None if payload is None else json.dumps(payload).encode())
    except OSError as error:
        return type(error).__name__, b"", time.monotonic() - start
    return status, text, time.monotonic() - start


def check_service(port):
    """Assert that a new client gets its answer, and the health check its own, in time."""
    for payload, path in ((PAYLOAD, "/v1/completions"), (None, "/health")):
        status, text, seconds = timed(port, payload, path)
        assert status == 200 and seconds < PROMPT_S, (path, status, text[:200], seconds)


@pytest.fixture
def silent():
    """A function that opens connections which send some bytes and then nothing."""
    with contextlib.ExitStack() as stack:

        def connect(port, count, first=b""):
            found = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(count)
            ]
            for s in found:
                s.sendall(first)
            return found

        yield connect


INCOMPLETE = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"


@pytest.mark.parametrize("first", [b"", b"POST /v1/comp", INCOMPLETE])
def test_silent_connections_lock_nobody_out(served, silent, first):
    silent(served, 120, first)
    check_service(served)


def test_connections_beyond_the_limit_replace_silent_ones(served, silent):
    silent(served, 500)
    check_service(served)


def test_many_clients_at_once_are_answered_up_to_the_queue(served):
    health = []
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        answers = [pool.submit(timed, served, PAYLOAD) for _ in range(200)]
        while not all(a.done() for a in answers):
            health.append(timed(served, path="/health"))
            time.sleep(0.1)
    found = [a.result()[0] for a in answers]
    assert set(found) <= {200, 429} and found.count(200) >= 64, {s: found.count(s) for s in set(found)}
    assert all(status == 200 and seconds < PROMPT_S for status, _, seconds in health)
    check_service(served)


@pytest.mark.parametrize("text", ["a " * 2**20, "a" * 2**20, "a " * 1500])
def test_long_texts_stop_nobody(served, text):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(timed, served, {"prompt": text, "max_tokens": 1}) for _ in range(8)]
        for _ in range(4):
            check_service(served)
    assert all(a.result()[0] == 400 for a in answers), [a.result()[:2] for a in answers]


def test_long_texts_are_tokenized_beside_short_ones():
    long, entered = threading.Event(), threading.Event()

    def encode(text):
        if len(text) > 5000:
            entered.set()
            long.wait(20)
        return [1, 2]

    with GenerationEngine(made("gpt2"), rows=1, blocks=4, block=16, chunk=2, longest=48) as engine:
        with (
            endpoint(Endpoint(engine, "gpt", encode=encode, token_characters=1000)) as port,
            concurrent.futures.ThreadPoolExecutor(40) as pool,
        ):
            assert timed(port, {"prompt": "a", "max_tokens": 1})[0] == 200  # compiles
            payload = {"prompt": "a" * 6000, "max_tokens": 1}
            waiting = [pool.submit(timed, port, payload) for _ in range(40)]
            try:
                assert entered.wait(10)
                wait_for(lambda: sum(w.done() for w in waiting) == 8)
                check_service(port)
                assert [w.result()[0] for w in waiting if w.done()] == [429] * 8
            finally:
                long.set()
            assert sorted(w.result()[0] for w in waiting) == [200] * 32 + [429] * 8


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_place_in_the_queue(stream):
    body = json.dumps({"prompt": [1], "max_tokens": 14, "stream": stream}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with GenerationEngine(made("gpt2"), rows=1, blocks=4, block=16, chunk=2, longest=16, max_queue=8) as engine:
        turn, held, go = engine._turn, threading.Event(), threading.Event()
        engine._turn = lambda: (held.set(), go.wait(), turn())
        with endpoint(Endpoint(engine, "gpt")) as port, contextlib.ExitStack() as at_end:
            at_end.callback(go.set)  # else a failure here waits for ever for the engine's thread
            gone = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(9)]
            gone[0].sendall(head + body)
            assert held.wait(10)  # the turn before may have waited for a request, and take it
            for s in gone[1:]:
                s.sendall(head + body)
            wait_for(lambda: engine.statistics()["waiting"] == 8)
            assert timed(port, {"prompt": [1], "max_tokens": 2})[0] == 429
            for s in gone:
                s.close()
            wait_for(lambda: engine.statistics()["waiting"] == 0)
            go.set()
            assert timed(port, {"prompt": [1], "max_tokens": 2})[0] == 200


def wait_for(holds, seconds=10.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def closed_after(s, seconds):
    """Return after how long the server closes a connection."""
    s.settimeout(seconds)
    start = time.monotonic()
    with contextlib.suppress(ConnectionResetError):
        while s.recv(2**16):
            pass
    return time.monotonic() - start


@pytest.mark.parametrize("after", ["connection", "part of a header", "answer", "headers that drip"])
def test_a_connection_without_a_request_is_closed(after):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    with endpoint(app, http=limited_protocol(header_s=0.5)) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            first = {"part of a header": b"GET / HT", "answer": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"}.get(after, b"")
            s.sendall(first)
            if after == "headers that drip":
                threading.Thread(target=drip, args=(s,), daemon=True).start()
            assert 0.3 < closed_after(s, 5) < 3


def drip(s):
    with contextlib.suppress(OSError):
        for byte in b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20:
            s.sendall(bytes([byte]))
            time.sleep(0.1)


def test_a_client_that_does_not_read_is_disconnected():
    ended = threading.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            for _ in range(1000):
                await send({"type": "http.response.body", "body": b"x" * 2**18, "more_body": True})
                if (await receive_now(receive)) == "http.disconnect":
                    return
        finally:
            ended.set()

    async def receive_now(receive):
        import asyncio

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.001):
                return (await receive())["type"]
        return None

    with endpoint(app, http=limited_protocol(write_s=0.5)) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert ended.wait(5)


@pytest.mark.parametrize(
    "header, right",
    [
        ("Bearer secret", True),
        ("bearer secret", True),
        ("secret", False),
        ("Basic secret", False),
        ("Bearersecret", False),
        ("Bearer secretx", False),
        ("Bearer ", False),
        ("", False),
        ("Bearer s\xe9cret", False),
    ],
)
def test_a_token_has_its_scheme(header, right):
    assert has_token(header, "secret") is right


@pytest.mark.parametrize(
    "payload, words",
    [
        ({"prompt": "\ud800"}, "surrogate"),
        ({"prompt": [1], "\udfff": 1}, "unknown fields"),
        ({"prompt": [1], "max_tokens": 10**4000}, "max_tokens is a whole number"),
        ({"prompt": [10**4000]}, "one list of token numbers"),
        ({"prompt": [1] * 5000}, "5000 tokens"),
        ({"prompt": "a" * 300_000}, "characters"),
    ],
)
def test_requests_that_nothing_can_be_made_of_are_answered_by_400(served, payload, words):
    status, text, _ = timed(served, payload)
    assert status == 400 and words in json.loads(text)["error"]["message"], (status, text[:300])


def test_a_body_that_is_too_large_is_answered_not_reset(served):
    assert ask(f"http://127.0.0.1:{served}/v1/completions", b" " * (64 * 2**20))[0] == 413


def test_file_limit_leaves_room_for_the_program():
    assert 64 <= raise_file_limit(256) <= 256
