"""OpenAI-compatible HTTP endpoint of a `GenerationEngine`: completions, models, health, metrics.

    python -m sbpjax.serving.openai DIRECTORY --tokenizer tokenizer.json

``POST /v1/completions`` with a prompt as text, or as token numbers; ``"stream": true`` sends server-sent events.
``GET /v1/models``, ``/health`` and ``/metrics`` are there too. It listens on this machine only unless ``--host`` names
another address, and requires a bearer token if ``--token`` is given. Starlette and uvicorn are in the extra ``serve``.

One slow client does not slow the others: connections have limits (`sbpjax.serving.http`), a prompt beyond the model's
maximum length is rejected before it is tokenized, texts are tokenized in threads (long ones in one of their own), and
requests beyond the engine's queue are answered by 429 at once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sbpjax import models, nn
from sbpjax.errors import BusyError, SbpjaxError, ServingError
from sbpjax.train.data import read_tokenizer
from sbpjax.utils.host import LazyModule, command_parser, pip_install, show_progress

from .generation import GenerationEngine, Stream
from .http import RequestError, has_token, limited_protocol, raise_file_limit, read_body

# Of the extra `serve`.
applications = LazyModule("starlette.applications")
responses = LazyModule("starlette.responses")
routing = LazyModule("starlette.routing")
uvicorn = LazyModule("uvicorn")

_TOKENS = "[1, 2, 3]"  # an example of a prompt
_FIELDS = {"model", "prompt", "max_tokens", "temperature", "stream", "stop", "user", "n", "top_p", "seed", "echo"}
_MOST_BYTES = 4 * 2**20
_SHORT = 4096  # characters that are tokenized within milliseconds
_MAX_LONG_TEXTS = 32  # long texts that wait for a tokenizer
_MAX_TOKENS = 2**31


class Endpoint:
    """ASGI application of the endpoint.

    Args:
        engine: the running engine.
        name: the name of the model for clients.
        encode: token numbers of a text; without it prompts are token numbers.
        decode: the text of token numbers; without it answers have numbers alone.
        end: the token that ends a text, if there is one.
        token: the bearer token of clients; None for no authentication.
        token_characters: the maximum number of characters of a token; a text with more than this for each token that
            the engine takes is rejected before it is tokenized.
        most_bytes: the largest request.
        read_s: how long a request may take to arrive, in seconds.
        timeout_s: how long a request may take from then to its last token, its time in the queue included.

    Raises:
        ServingError: Starlette is not installed.
    """

    def __init__(
        self,
        engine: GenerationEngine,
        name: str,
        *,
        encode: Callable[[str], list[int]] | None = None,
        decode: Callable[[list[int]], str] | None = None,
        end: int | None = None,
        token: str | None = None,
        token_characters: int = 128,
        most_bytes: int = _MOST_BYTES,
        read_s: float = 30.0,
        timeout_s: float = 600.0,
    ):
        try:
            self.app: Any = applications.Starlette(
                routes=[
                    routing.Route("/v1/completions", self._completions, methods=["POST"]),
                    routing.Route("/v1/models", self._models),
                    routing.Route("/health", self._health),
                    routing.Route("/metrics", self._metrics),
                ]
            )
        except ImportError as error:
            raise ServingError(
                "Endpoint(...)", str(error), "the endpoint is a Starlette application", pip_install("serve")
            ) from None
        self._engine, self._name, self._encode, self._decode = engine, name, encode, decode
        self._end, self._token, self._most_bytes = end, token, most_bytes
        self._read_s, self._timeout_s = read_s, timeout_s
        self._most_characters = engine.longest * token_characters
        self._short_texts = ThreadPoolExecutor(2, "tokenize")
        self._long_texts = ThreadPoolExecutor(1, "tokenize-long")
        self._long_texts_waiting = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request of the ASGI interface."""
        await self.app(scope, receive, send)

    # -- small ones ----------------------------------------------------------------------------------------------------

    async def _health(self, request: Any) -> Any:
        return responses.JSONResponse({"status": "ok"})

    async def _models(self, request: Any) -> Any:
        if (refused := self._refusal(request)) is not None:
            return refused
        return responses.JSONResponse(
            {"object": "list", "data": [{"id": self._name, "object": "model", "owned_by": "sbpjax"}]}
        )

    async def _metrics(self, request: Any) -> Any:
        if (refused := self._refusal(request)) is not None:
            return refused
        found = self._engine.statistics()
        return responses.PlainTextResponse(
            "".join(f"sbpjax_generation_{name} {value}\n" for name, value in found.items())
        )

    def _refusal(self, request: Any) -> Any:
        if self._token is None or has_token(request.headers.get("authorization", ""), self._token):
            return None
        return _error(401, "the header Authorization is `Bearer` and the server's token")

    # -- completions ---------------------------------------------------------------------------------------------------

    async def _completions(self, request: Any) -> Any:
        if (refused := self._refusal(request)) is not None:
            return refused
        try:
            payload = await self._read_json(request)
            prompt = await self._prompt(payload["prompt"])
            stream = self._engine.submit(
                prompt,
                payload.get("max_tokens", 16),
                stop=() if self._end is None else (self._end,),
                temperature=payload.get("temperature", 0.0),
            )
        except RequestError as error:
            return _error(error.status, str(error))
        except BusyError as error:
            return _error(429, str(error).splitlines()[1].strip())
        except ServingError as error:
            return _error(400, " ".join(line.strip() for line in str(error).splitlines()[1:3]))
        head = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": self._name,
        }
        if payload.get("stream", False):
            events = responses.StreamingResponse(self._events(stream, head), media_type="text/event-stream")
            return _Cancelling(events, stream)
        gone = asyncio.create_task(_cancel_when_gone(request, stream))
        try:
            async with asyncio.timeout(self._timeout_s):
                tokens = [token async for token in stream]
        except TimeoutError:
            return _error(504, f"a request takes at most {self._timeout_s:g} s: request fewer tokens")
        # Whatever ended the engine, every waiting request gets an answer.
        except Exception as error:
            return _error(503, str(error).splitlines()[min(1, str(error).count("\n"))].strip() or "the engine ended")
        finally:
            gone.cancel()
            stream.cancel()
        usage = {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(tokens),
            "total_tokens": len(prompt) + len(tokens),
        }
        return responses.JSONResponse({**head, "choices": [self._choice(tokens, stream.finish_reason)], "usage": usage})

    async def _read_json(self, request: Any) -> dict:
        body = await read_body(request.receive, self._most_bytes, self._read_s)
        try:
            payload = json.loads(body)
        except (ValueError, RecursionError):
            raise RequestError(400, "the body is no JSON") from None
        if not isinstance(payload, dict) or "prompt" not in payload:
            raise RequestError(400, "the body is an object with a prompt")
        unknown = sorted(payload.keys() - _FIELDS)
        if unknown:
            raise RequestError(400, f"unknown fields: {', '.join(unknown[:5])}")
        if payload.get("model", self._name) != self._name:
            raise RequestError(404, f"the model is {self._name}")
        for name, fits, rule in (
            ("max_tokens", lambda v: type(v) is int and 1 <= v <= _MAX_TOKENS, "a whole number from 1"),
            ("temperature", lambda v: type(v) in (int, float) and 0 <= v <= 100, "a number from 0"),
            ("stream", lambda v: type(v) is bool, "a bool"),
            ("n", lambda v: v == 1, "1: send several requests for several answers"),
            ("top_p", lambda v: v == 1, "1: of the sampling options only temperature is supported"),
            ("stop", lambda v: v in (None, []), "not supported: answers end at the tokenizer's end token"),
            ("echo", lambda v: v is False, "false"),
        ):
            if name in payload and not fits(payload[name]):
                raise RequestError(400, f"{name} is {rule}")
        return payload

    async def _prompt(self, given: Any) -> list[int]:
        if isinstance(given, str):
            if self._encode is None:
                raise RequestError(
                    400, f"there is no tokenizer here: a prompt is a list of token numbers, such as {_TOKENS}"
                )
            return await self._tokens(given, self._encode)
        if not isinstance(given, list) or not given:
            raise RequestError(400, "a prompt is one text, or one list of token numbers")
        if len(given) > self._engine.longest:
            rule = f"a sequence has at most {self._engine.longest} tokens here"
            raise RequestError(400, f"a prompt of {len(given)} tokens: {rule}")
        if not all(type(n) is int and abs(n) <= _MAX_TOKENS for n in given):
            raise RequestError(400, "a prompt is one text, or one list of token numbers")
        return given

    async def _tokens(self, text: str, encode: Callable[[str], list[int]]) -> list[int]:
        """Tokenize a text in a thread; long texts are queued in a thread of their own and do not block short ones."""
        if len(text) > self._most_characters:
            rule = f"a prompt has at most {self._most_characters} characters here"
            raise RequestError(400, f"{rule}: the model reads {self._engine.longest} tokens")
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise RequestError(400, "the prompt has half of a surrogate pair, which is no character")
        loop = asyncio.get_running_loop()
        if len(text) <= _SHORT:
            return await loop.run_in_executor(self._short_texts, encode, text)
        if self._long_texts_waiting >= _MAX_LONG_TEXTS:
            raise RequestError(429, f"{_MAX_LONG_TEXTS} long prompts wait to be tokenized: send it again later")
        self._long_texts_waiting += 1
        try:
            return await loop.run_in_executor(self._long_texts, encode, text)
        finally:
            self._long_texts_waiting -= 1

    def _choice(self, tokens: Sequence[int], reason: str | None) -> dict:
        payload = tokens[:-1] if reason == "stop" else tokens
        text = "" if self._decode is None else self._decode(list(payload))
        return {"index": 0, "text": text, "tokens": list(tokens), "finish_reason": reason}

    async def _events(self, stream: Stream, head: dict) -> AsyncIterator[str]:
        shown, tokens = "", []
        ends = asyncio.get_running_loop().time() + self._timeout_s
        timer = asyncio.get_running_loop().call_at(ends, stream.cancel)
        try:
            async for token in stream:
                tokens.append(token)
                choice = {"index": 0, "text": "", "tokens": [token], "finish_reason": None}
                if self._decode is not None and token != self._end:
                    text = self._decode(tokens)
                    # A token may be a part of a character; the next ones complete it.
                    if not text.endswith("\ufffd"):
                        choice["text"], shown = text[len(shown) :], text
                yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"
            last = {"index": 0, "text": "", "tokens": [], "finish_reason": stream.finish_reason}
            yield f"data: {json.dumps({**head, 'choices': [last]})}\n\n"
            yield "data: [DONE]\n\n"
        except ServingError as error:
            payload = {"message": str(error).splitlines()[1].strip(), "type": "server_error", "code": 503}
            yield f"data: {json.dumps({'error': payload})}\n\n"
        finally:
            timer.cancel()


class _Cancelling:
    """Streamed answer that cancels its request however it ends: its client may leave before the first token."""

    def __init__(self, response: Any, stream: Stream):
        self._response, self._stream = response, stream

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await self._response(scope, receive, send)
        finally:
            self._stream.cancel()


async def _cancel_when_gone(request: Any, stream: Stream) -> None:
    """Cancel a request when its client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    stream.cancel()


def _error(status: int, message: str) -> Any:
    message = message.encode("utf-8", "backslashreplace").decode()  # a field's name may have half of a surrogate pair
    kind = "invalid_request_error" if status < 500 and status != 429 else "server_error"
    return responses.JSONResponse({"error": {"message": message, "type": kind, "code": status}}, status)


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket of an address; it refuses connections until the server listens."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        rule = "the address is one of this machine, and the port is free"
        raise ServingError(f"listening on {host}:{port}", str(error), rule, f"--port {port + 1}") from None
    return made


def _load(options: argparse.Namespace) -> tuple[GenerationEngine, dict[str, Any]]:
    """Return the engine of a command line, and the options of an `Endpoint` that its tokenizer gives."""
    model = models.from_pretrained(options.directory)
    if options.int8:
        nn.utils.quantize_weights(model)
    if options.tensor_parallel > 1:
        models.parallelize(model, models.Parallel(tensor=options.tensor_parallel))
    of_text: dict[str, Any] = {}
    if options.tokenizer:
        tokenizer = read_tokenizer(options.tokenizer)
        of_text = {
            # Of the tokenizer's ways only those for batches let other threads run.
            "encode": lambda text: tokenizer.encode_batch_fast([text])[0].ids,
            "decode": tokenizer.decode,
            "token_characters": max(map(len, tokenizer.get_vocab()), default=1),
        }
    engine = GenerationEngine(
        model, rows=options.rows, blocks=options.blocks, longest=options.longest, max_queue=options.max_queue
    )
    return engine, of_text


def _request(options: argparse.Namespace, address: str) -> str:
    """Return a command that sends a request to a server."""
    prompt = '"Once"' if options.tokenizer else _TOKENS
    token = " -H 'Authorization: Bearer TOKEN'" if options.token else ""
    return f"curl {address}/completions{token} -d '{{\"prompt\": {prompt}}}'"


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a model of a Hugging Face folder."""
    parser = command_parser("sbpjax.serving.openai")
    parser.add_argument(
        "directory", help="a folder with config.json and safetensors, as models.from_pretrained reads them"
    )
    parser.add_argument("--name", help="name of the model for clients; by default the folder's name")
    parser.add_argument(
        "--tokenizer", help=f"a tokenizer.json; without it, prompts are token numbers, such as {_TOKENS}"
    )
    parser.add_argument("--end", type=int, help="the end-of-text token")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on; by default 127.0.0.1, only this machine"
    )
    parser.add_argument("--port", type=int, default=8080, help="port for HTTP requests")
    parser.add_argument("--rows", type=int, default=8, help="largest number of sequences in a batch")
    parser.add_argument("--blocks", type=int, default=1024, help="number of blocks of 16 tokens for keys and values")
    parser.add_argument("--longest", type=int, default=2048, help="largest number of tokens in a sequence")
    parser.add_argument(
        "--max-queue", type=int, default=256, help="largest number of requests that wait; others are rejected"
    )
    parser.add_argument(
        "--max-connections",
        type=int,
        default=2048,
        help="largest number of connections; beyond it, idle ones are closed",
    )
    parser.add_argument(
        "--timeout-s", type=float, default=600.0, help="seconds that a request may take, until its last token"
    )
    parser.add_argument("--max-bytes", type=int, default=_MOST_BYTES, help="of a request")
    parser.add_argument("--int8", action="store_true", help="use 8-bit weights")
    parser.add_argument("--tensor-parallel", type=int, default=1, metavar="N", help="divide the model over N devices")
    token = os.environ.get("SBPJAX_SERVING_TOKEN")
    parser.add_argument("--token", default=token, help="bearer token of clients; SBPJAX_SERVING_TOKEN by default")
    parser.add_argument("--certificate", help="for TLS")
    parser.add_argument("--private-key", help="for TLS")
    options = parser.parse_args(arguments)
    try:
        with _bind(options.host, options.port) as listener:  # before the model is read, which takes longer
            name = options.name or Path(options.directory).resolve().name
            with show_progress(f"{name}: loading the model"):
                engine, of_text = _load(options)
            app = Endpoint(
                engine, name, end=options.end, token=options.token, most_bytes=options.max_bytes,
                timeout_s=options.timeout_s, **of_text,
            )  # fmt: skip
            config = uvicorn.Config(
                app,
                host=options.host,
                port=options.port,
                log_level="warning",
                ssl_certfile=options.certificate,
                ssl_keyfile=options.private_key,
                timeout_keep_alive=30,
                http=limited_protocol(max_connections=raise_file_limit(options.max_connections + 128)),
            )
            with engine:
                address = f"http{'s' * bool(options.certificate)}://{options.host}:{options.port}/v1"
                print(f"{name} answers at {address} until Ctrl-C, for example:", _request(options, address), flush=True)
                # uvicorn raises the signal that ended it again, when all requests are answered.
                before = signal.signal(signal.SIGTERM, lambda *_: None)
                try:
                    with contextlib.suppress(KeyboardInterrupt):
                        uvicorn.Server(config).run(sockets=[listener])
                finally:
                    signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
                print(f"{name} ends: all requests are answered", flush=True)
    except SbpjaxError as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
