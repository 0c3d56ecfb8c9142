"""KServe server for a model repository, for machines without a Triton binary.

    python -m sbpjax.serving REPOSITORY --server kserve

It speaks the same protocol over HTTP, without dynamic batching: a request is run as it comes, padded to the next of a
few sizes. KServe 0.21 listens on all interfaces and has no option for it; here it gets an address, this machine's by
default. It requires another protobuf than the lock files of this project, so it needs an environment of its own:
``pip install sbpjax "kserve>=0.21"``.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sbpjax as flow
from sbpjax.errors import ServingError

from .batches import Batches
from .http import RequestError, has_token, limited_protocol, raise_file_limit, read_body
from .repository import TYPES, Model, Repository

MOST_BYTES = 64 * 2**20
MAX_CONNECTIONS = 2048
_JSON_BYTES = 32  # of a number, written in full, with its separators


def serve(
    repository: Repository,
    *,
    host: str = "127.0.0.1",
    http_port: int = 8000,
    token: str | None = None,
    certificate: str | os.PathLike | None = None,
    private_key: str | os.PathLike | None = None,
    max_queue: int = 1024,
    most_bytes: int | None = None,
) -> None:
    """Serve a repository by KServe until the process receives a signal to end.

    Args:
        repository: the models; of each its newest version.
        host: the address.
        http_port: the port.
        token: the bearer token of clients; health is open. None for no authentication.
        certificate: a file, for TLS.
        private_key: a file, of the certificate.
        max_queue: the maximum number of waiting requests of a model; further ones are rejected.
        most_bytes: the largest request; by default the JSON size of the largest batch of the repository's models, and
            64 MiB at most.

    Raises:
        ServingError: KServe is not installed.
    """
    kserve, rest = _packages(repository)
    models = [_make_model(kserve, model, max_queue) for model in repository.models]
    server = kserve.ModelServer(enable_grpc=False)
    for model in models:
        server.register_model(model)
    own = rest.server.RESTServer(
        "kserve.model_server:app",
        server.dataplane,
        server.model_repository_extension,
        http_port,
        ssl_certfile=None if certificate is None else os.fspath(certificate),
        ssl_keyfile=None if private_key is None else os.fspath(private_key),
    )
    own.config.host = host
    own.create_application()
    own.config.app = _LimitedApp(
        kserve.model_server.app, token, _most_bytes(repository) if most_bytes is None else most_bytes
    )
    own.config.http = limited_protocol(max_connections=raise_file_limit(MAX_CONNECTIONS + 128))
    scheme = "http" if certificate is None else "https"
    names = ", ".join(f"{model.name} (version {model.versions[-1]})" for model in repository.models)
    print(f"serving {names} on {scheme}://{host}:{http_port}, by KServe", flush=True)
    asyncio.run(own._server.serve())


def _most_bytes(repository: Repository) -> int:
    """Return the bytes of the largest request that a model takes; parsing a larger one would stop the others."""
    sizes = [max(model.max_batch, 1) * sum(math.prod(p.dims) for p in model.inputs) for model in repository.models]
    has_free_dim = any(n < 0 for model in repository.models for port in model.inputs for n in port.dims)
    return MOST_BYTES if has_free_dim else min(2**20 + _JSON_BYTES * max(sizes, default=0), MOST_BYTES)


def _packages(repository: Repository) -> tuple[Any, Any]:
    known, sys.argv = sys.argv, sys.argv[:1]  # kserve 0.21 reads the command line as it is imported
    try:
        import kserve  # no dependency
        import kserve.model_server  # likewise
        import kserve.protocol.rest.server  # likewise
    except ImportError as error:
        raise ServingError(
            f"serving {os.fspath(repository.path)!r}, by kserve",
            str(error),
            "KServe is a package of its own, in an environment of its own",
            'pip install sbpjax "kserve>=0.21", without the lock files: it wants protobuf 6',
        ) from None
    finally:
        sys.argv = known
    return kserve, kserve.protocol.rest


def _make_model(kserve: Any, model: Model, max_queue: int) -> Any:
    """Return a model of KServe's that runs an exported graph."""
    from kserve.protocol.infer_type import InferOutput, InferResponse  # no dependency

    graph = flow.load_graph(model.export(model.versions[-1]))
    getattr(graph, {"xla": "enable_constant_weights"}.get(model.engine, f"enable_{model.engine}"))(True)
    batches = Batches(graph, model.max_batch)
    batches.warm()
    free = [-1] if model.max_batch else []

    class ServedModel(kserve.Model):
        def __init__(self) -> None:
            super().__init__(model.name)
            self.ready = True
            self._one = ThreadPoolExecutor(1)  # one request after the other: XLA has all cores for each
            self._waiting = 0

        def get_input_types(self) -> list[dict]:
            return [{"name": p.name, "datatype": TYPES[p.dtype], "shape": [*free, *p.dims]} for p in model.inputs]

        def get_output_types(self) -> list[dict]:
            return [{"name": p.name, "datatype": TYPES[p.dtype], "shape": [*free, *p.dims]} for p in model.outputs]

        async def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> Any:
            arrays = [self._array(payload, port) for port in model.inputs]
            if self._waiting >= max_queue:
                raise kserve.errors.InferenceError(f"{max_queue} requests wait: retry later")
            self._waiting += 1
            try:
                loop = asyncio.get_running_loop()
                (outs,) = await loop.run_in_executor(self._one, batches, [arrays])
            except flow.errors.SbpjaxError as error:
                raise kserve.errors.InvalidInput(" ".join(str(error).split())) from None
            finally:
                self._waiting -= 1
            found = []
            for port, out in zip(model.outputs, outs, strict=True):
                made = InferOutput(port.name, list(out.shape), TYPES[port.dtype])
                made.set_data_from_numpy(out, binary_data=False)
                found.append(made)
            return InferResponse(payload.id or "", model.name, found)

        def _array(self, payload: Any, port: Any) -> Any:
            given = None if isinstance(payload, dict) else payload.get_input_by_name(port.name)
            if given is None:
                raise kserve.errors.InvalidInput(f"no input {port.name!r}")
            if given.datatype != TYPES[port.dtype]:
                raise kserve.errors.InvalidInput(
                    f"input {port.name} is {given.datatype}, the model takes {TYPES[port.dtype]}"
                )
            try:
                array = given.as_numpy()
            # Whatever is wrong with a request is its sender's.
            except Exception as error:
                raise kserve.errors.InvalidInput(f"input {port.name}: {error}") from None
            dims = array.shape[len(free) :]
            fits = len(array.shape) == len(free) + len(port.dims) and all(n in (-1, m) for n, m in zip(port.dims, dims))
            if not fits or (free and not 1 <= array.shape[0] <= model.max_batch):
                wanted = [*(["1 to " + str(model.max_batch)] if free else []), *port.dims]
                raise kserve.errors.InvalidInput(f"input {port.name} is {list(array.shape)}, the model takes {wanted}")
            return array

    return ServedModel()


class _LimitedApp:
    """ASGI application with limits of a request's size and time, and a token.

    A request is cancelled when its client disconnects, which frees its place in the model's queue.
    """

    def __init__(self, app: Any, token: str | None, most_bytes: int, read_s: float = 30.0):
        self.app, self._token, self._most_bytes, self._read_s = app, token, most_bytes, read_s

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {key.lower(): value for key, value in scope["headers"]}
        health = "/health" in scope["path"] or scope["path"].endswith("/ready") or scope["path"] == "/"
        given = headers.get(b"authorization", b"").decode("latin-1")
        if self._token is not None and not health and not has_token(given, self._token):
            return await self._refuse(send, 401, b"the header Authorization is `Bearer` and the server's token")
        try:
            body = await read_body(receive, self._most_bytes, self._read_s)
        except RequestError as error:
            return await self._refuse(send, error.status, str(error).encode())
        if b"inference-header-content-length" not in headers:
            # KServe 0.21 takes content types other than JSON for the binary extension; Triton needs no such header.
            kept = [(key, value) for key, value in scope["headers"] if key.lower() != b"content-type"]
            scope = {**scope, "headers": [*kept, (b"content-type", b"application/json")]}
        await self._run(scope, body, receive, send)

    async def _run(self, scope: Any, body: bytes, receive: Any, send: Any) -> None:
        gone = asyncio.ensure_future(receive())  # after the body only a disconnection comes
        whole = [{"type": "http.request", "body": body, "more_body": False}]

        async def given_again() -> Any:
            return whole.pop() if whole else await asyncio.shield(gone)

        running = asyncio.ensure_future(self.app(scope, given_again, send))
        try:
            await asyncio.wait([running, gone], return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not running.done():
                running.cancel()
        if not running.cancelled():
            with contextlib.suppress(asyncio.CancelledError):
                await running

    async def _refuse(self, send: Any, status: int, why: bytes) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"error": "' + why + b'"}'})
