"""`Server`: a Triton server process for a model repository.

    with Server(Repository("models")) as server:
        server.wait()

Triton reads a repository that is made for it in a temporary folder: for each version a ``model.py`` of a few lines,
which hands on to `sbpjax.serving.backend`. The server is one that is installed, or that of the wheel
``nvidia-pytriton``, whose binary and Python backend are enough; the wheel's own Python code needs NumPy 1 and is not
used.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from importlib import metadata
from pathlib import Path

from sbpjax.errors import ServingError
from sbpjax.utils.host import ProcessTie

from .repository import Repository

_INSIDE = Path("pytriton/tritonserver")
_MODEL = """import sys
sys.path[:0] = {path!r}
sys.executable = {python!r}  # the embedded one has no packages
import jax
import triton_python_backend_utils as utils
from sbpjax.serving.backend import TritonModel

# A batch runs on the thread that waits for it: another one would have to wake up first.
jax.config.update("jax_cpu_enable_async_dispatch", False)


class TritonPythonModel(TritonModel):
    def __init__(self):
        super().__init__(utils, {folder!r}, {engine!r})
"""


def find_server(path: str | os.PathLike | None = None) -> Path:
    """Return the binary of a Triton server.

    Args:
        path: the binary, or a folder in which the wheel ``nvidia-pytriton`` was unpacked; without it
            ``SBPJAX_TRITONSERVER``, then an installed one.

    Raises:
        ServingError: there is none.
    """
    given = path or os.environ.get("SBPJAX_TRITONSERVER")
    places = [] if given is None else [Path(given), Path(given) / _INSIDE / "bin/tritonserver"]
    if given is None:
        if (found := shutil.which("tritonserver")) is not None:
            places.append(Path(found))
        try:
            wheel = metadata.distribution("nvidia-pytriton")
            places.append(Path(str(wheel.locate_file(_INSIDE / "bin/tritonserver"))))
        except metadata.PackageNotFoundError:
            pass
    for place in places:
        if place.is_file():
            return place
    raise ServingError(
        "starting a Triton server",
        "no tritonserver" if given is None else f"no tritonserver at {os.fspath(given)!r}",
        "the server is a program of its own; a wheel has it, whose Python code is not needed",
        "pip install --no-deps nvidia-pytriton==0.7.0",
    )


class Server:
    """Server that runs within a ``with`` block.

    Args:
        repository: the models.
        host: the address; by default this machine only.
        http_port: of the HTTP endpoint.
        grpc_port: of the gRPC endpoint.
        metrics_port: of the metrics.
        control: whether clients may load and unload models.
        token: the token that clients send in the header ``authorization``, as ``Bearer <token>``; None for no
            authentication. A client of gRPC sends ``triton-grpc-protocol-authorization``. Health and metrics are open.
            The server has it in its command line.
        certificate: a file, for TLS of gRPC. Triton has none for HTTP, which then listens on this machine only.
        private_key: a file, of the certificate.
        binary: see `find_server`.
        start_s: how long it may take until all models are ready, in seconds.

    Raises:
        ServingError: there is no server, or it does not become ready; the text has the end of its log.
    """

    def __init__(
        self,
        repository: Repository,
        *,
        host: str = "127.0.0.1",
        http_port: int = 8000,
        grpc_port: int = 8001,
        metrics_port: int = 8002,
        control: bool = False,
        token: str | None = None,
        certificate: str | os.PathLike | None = None,
        private_key: str | os.PathLike | None = None,
        binary: str | os.PathLike | None = None,
        start_s: float = 300.0,
    ):
        self._repository, self._binary, self._start_s = repository, find_server(binary), start_s
        self._host, self._http, self._grpc, self._metrics = host, http_port, grpc_port, metrics_port
        self._control, self._token = control, token
        self._certificate, self._private_key = certificate, private_key
        self._check_options()
        self._process: subprocess.Popen | None = None

    def _check_options(self) -> None:
        operation = f"serving {os.fspath(self._repository.path)!r}"
        if self._token is not None and not re.fullmatch(r"[A-Za-z0-9._~+/=-]{8,}", self._token):
            rule = "a token has at least 8 letters, digits or signs of ._~+/=-"
            raise ServingError(operation, f"a token of {len(self._token)} characters", rule, "openssl rand -hex 24")
        given = [self._certificate, self._private_key]
        if (None in given) != (given == [None, None]):
            rule = "TLS needs a certificate and its key"
            raise ServingError(operation, "one of certificate and private_key", rule, "--certificate and --private-key")
        for file in given:
            if file is not None and not Path(file).is_file():
                raise ServingError(
                    operation, f"no file {os.fspath(file)!r}", "TLS reads its files", "the file's own name"
                )

    def __enter__(self) -> Server:
        """Start it, and return when all models are ready."""
        self._folder = tempfile.TemporaryDirectory(prefix="sbpjax-serving-")
        self.log = Path(self._folder.name) / "log"
        self._tie = ProcessTie()
        try:
            command, environment = self._command(), self._environment()
            with open(self.log, "wb") as log:
                self._process = self._tie.start(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until running requests are answered, and end."""
        process, self._process = self._process, None
        if process is not None:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(40)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self._tie.close()
        self._folder.cleanup()

    def stop(self) -> None:
        """Send SIGTERM to the server."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Return its exit status when it has ended."""
        return 0 if self._process is None else self._process.wait()

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    # -- files and options of the start --------------------------------------------------------------------------------

    def _command(self) -> list[str]:
        made = Path(self._folder.name)
        models, backends = made / "models", made / "backends"
        path = [
            str(Path(__file__).resolve().parents[2]),
            *dict.fromkeys(sysconfig.get_paths()[k] for k in ("purelib", "platlib")),
        ]
        for model in self._repository.models:
            folder = models / model.name
            for version in model.versions:
                (folder / str(version)).mkdir(parents=True)
                text = _MODEL.format(
                    path=path, python=sys.executable, folder=str(model.export(version)), engine=model.engine
                )
                (folder / str(version) / "model.py").write_text(text)
            (folder / "config.pbtxt").write_text(model.config())
            for label in model.folder.glob("*.txt"):
                shutil.copy(label, folder)
        python = backends / "python"
        python.mkdir(parents=True)
        for file in (self._binary.parent.parent / "backends/python").iterdir():
            (python / file.name).symlink_to(file.resolve())
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        stub = self._binary.parent.parent / "python_backend_stubs" / version / "triton_python_backend_stub"
        if stub.exists():
            shutil.copy(stub, python)
            (python / stub.name).chmod(0o755)
        binary = self._binary
        if not os.access(binary, os.X_OK):  # unpacked without its mode
            binary = made / "tritonserver"
            shutil.copy(self._binary, binary)
            binary.chmod(0o755)
        control = (
            ["--model-control-mode=explicit", "--load-model=*"] if self._control else ["--model-control-mode=none"]
        )
        doors = []
        if self._token is not None:
            closed = "metadata,inference,shared-memory,model-config,model-repository,statistics,trace,logging"
            doors.append(f"--http-restricted-api={closed}:authorization=Bearer {self._token}")
            doors.append(f"--grpc-restricted-protocol={closed}:authorization=Bearer {self._token}")
        if self._certificate is not None and self._private_key is not None:
            doors += ["--grpc-use-ssl=true", f"--grpc-server-cert={os.fspath(self._certificate)}"]
            doors.append(f"--grpc-server-key={os.fspath(self._private_key)}")
        return [
            str(binary),
            f"--model-repository={models}",
            f"--backend-directory={backends}",
            f"--http-address={self._http_host}",
            f"--grpc-address={self._host}",
            f"--metrics-address={self._host}",
            f"--http-port={self._http}",
            f"--grpc-port={self._grpc}",
            f"--metrics-port={self._metrics}",
            "--exit-timeout-secs=30",
            "--disable-auto-complete-config",
            *control,
            *doors,
        ]

    @property
    def _http_host(self) -> str:
        return self._host if self._certificate is None else "127.0.0.1"

    def _environment(self) -> dict[str, str]:
        libraries = [
            str(place)
            for place in (
                self._binary.parent.parent.parent.parent / "nvidia_pytriton.libs",
                Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib"),
            )
            if place.is_dir()
        ]
        known = os.environ.get("LD_LIBRARY_PATH")
        path = os.pathsep.join([*libraries, *([known] if known else [])])
        return {"JAX_PLATFORMS": "cpu", **os.environ, "LD_LIBRARY_PATH": path}

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + self._start_s
        url = f"http://{self._http_host}:{self._http}/v2/health/ready"
        assert self._process is not None
        while self._process.poll() is None and time.monotonic() < end:
            try:
                with urllib.request.urlopen(url, timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        state = "did not become ready" if self._process.poll() is None else f"ended with status {self._process.poll()}"
        lines = self.log.read_text(errors="replace").splitlines()
        # The table of models with their messages; its lines are cut at any width.
        table = [line.strip("| \n") for line in lines if "|" in line and "READY" not in line and "Version" not in line]
        words = [line for line in table if line and not line.startswith(("+", "-", "0.", "Option"))]
        telling = [line for line in words if "seen:" in line or "Error" in line] or [
            line for line in lines if "error" in line.lower()
        ]
        raise ServingError(
            f"serving {os.fspath(self._repository.path)!r}",
            f"tritonserver {state}: " + " | ".join(line.strip()[:300] for line in telling[-4:]),
            "a server starts when all its models load and its ports are free",
            "correct that model, or choose other ports: --http-port, --grpc-port, --metrics-port",
        )
