"""Serving command: ``python -m sbpjax.serving REPOSITORY``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from sbpjax.errors import SbpjaxError
from sbpjax.utils.host import command_parser

from .kserve_server import serve
from .repository import ENGINES, Repository
from .triton import Server


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a repository until the process receives a signal to end."""
    parser = command_parser("sbpjax.serving")
    parser.add_argument("repository", help="a folder of exported graphs, <model>/<version>/model")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on; by default 127.0.0.1, only this machine"
    )
    parser.add_argument("--http-port", type=int, default=8000, help="port for HTTP requests")
    parser.add_argument("--grpc-port", type=int, default=8001, help="port for gRPC requests")
    parser.add_argument("--metrics-port", type=int, default=8002, help="port for Prometheus metrics")
    parser.add_argument(
        "--engine", choices=ENGINES, default="xla", help="engine of models whose config.pbtxt names none"
    )
    parser.add_argument("--max-batch", type=int, default=16, help="largest batch of models with a dynamic batch size")
    parser.add_argument("--queue-delay-us", type=int, default=500, help="microseconds that a request waits for others")
    parser.add_argument(
        "--max-queue",
        type=int,
        default=1024,
        help="largest number of requests that wait for a model; others are rejected",
    )
    parser.add_argument("--timeout-s", type=float, default=60.0, help="seconds that a request may wait in the queue")
    parser.add_argument("--max-model-mb", type=int, help="largest size of a model's files")
    token = os.environ.get("SBPJAX_SERVING_TOKEN")
    parser.add_argument("--token", default=token, help="bearer token of clients; SBPJAX_SERVING_TOKEN by default")
    parser.add_argument("--certificate", help="TLS certificate for gRPC; HTTP then listens on this machine only")
    parser.add_argument("--private-key", help="private key of the certificate")
    parser.add_argument("--control", action="store_true", help="let clients load and unload models")
    parser.add_argument("--server", choices=("triton", "kserve"), default="triton", help="the server")
    parser.add_argument("--tritonserver", help="the server's binary, or a folder with the wheel nvidia-pytriton in it")
    parser.add_argument("--check", action="store_true", help="read the repository, print the configurations and exit")
    options = parser.parse_args(arguments)
    try:
        repository = Repository(
            options.repository,
            engine=options.engine,
            max_batch=options.max_batch,
            queue_delay_us=options.queue_delay_us,
            max_queue=options.max_queue,
            timeout_s=options.timeout_s,
            max_model_mb=options.max_model_mb,
        )
        if options.check:
            for model in repository.models:
                print(f"# {model.name}\n{model.config()}")
            return
        if options.server == "kserve":
            serve(
                repository,
                host=options.host,
                http_port=options.http_port,
                token=options.token,
                certificate=options.certificate,
                private_key=options.private_key,
                max_queue=options.max_queue,
            )
            return
        server = Server(
            repository,
            host=options.host,
            http_port=options.http_port,
            grpc_port=options.grpc_port,
            metrics_port=options.metrics_port,
            control=options.control,
            token=options.token,
            certificate=options.certificate,
            private_key=options.private_key,
            binary=options.tritonserver,
        )
        names = ", ".join(f"{model.name} (version {model.versions[-1]})" for model in repository.models)
        requested: list[int] = []

        def end(signal_number: int, _: object) -> None:
            requested.append(signal_number)
            server.stop()

        status = -1
        # Triton 2.51 aborts on a request in JSON whose shape exceeds the memory: it starts again.
        while status < 0 and not requested:
            with server:
                print(f"serving {names} on http://{options.host}:{options.http_port}", flush=True)
                signal.signal(signal.SIGTERM, end)
                try:
                    status = server.wait()
                except KeyboardInterrupt:
                    print("ending: requests that run are answered first", flush=True)
                    return
            if status < 0 and not requested:
                print(f"tritonserver was ended by signal {-status}; it starts again", flush=True)
        sys.exit(status)
    except SbpjaxError as error:
        sys.exit(f"{type(error).__name__}: {error}")
