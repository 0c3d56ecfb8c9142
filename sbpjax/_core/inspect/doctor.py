"""``python -m sbpjax doctor``: versions, devices, cache folder, ports, and which extras can be loaded.

Each row is a fact, marked ``ok``, ``-`` (optional, not installed) or ``BAD``, with the command that mends it. Devices
are listed and the packages of extras imported in processes of their own: a driver that hangs or aborts becomes a row
instead of ending the command. An extra is ``ok`` if its packages are new enough and can be imported, CUDA's if the
plugin loads CUDA's libraries, and that of compilers if they make a topology. Without an NVIDIA GPU, CUDA's plugin
cannot be loaded and is ``ok``: it still compiles ahead of time.
"""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from importlib import metadata
from typing import NamedTuple

from sbpjax._core.naming import VERSION
from sbpjax._core.runtime.commands import command_parser
from sbpjax._core.runtime.host_limits import cores, free_bytes
from sbpjax._core.runtime.optional_packages import packages_of, pip_install
from sbpjax._core.serialization import cache_folder

REQUIRED = ("jax", "jaxlib", "flax", "optax", "numpy", "ml-dtypes")
EXTRAS = tuple("demo train vision onnx openvino int8 iree serve parquet cuda12 cuda13 tpu aot".split())
_GPU_FILES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")  # of a driver; in a container; in WSL 2
_DEVICES_S = 60.0
_REPORT_S = 5.0
_LIST_DEVICES = """
import collections, jax
kinds = collections.Counter((d.platform, d.device_kind) for d in jax.devices())
print("; ".join(f"{n} x {platform} ({kind})" for (platform, kind), n in kinds.items()))
"""


# Of an extra, if importing its packages is not enough. JAX does not start CUDA or a TPU compiler when it is imported.
_LOAD = {
    **{f"cuda{n}": f"import os; os.environ['JAX_PLATFORMS'] = 'cuda'; "
       f"from jax_plugins import xla_cuda{n} as plugin; plugin.initialize()" for n in (12, 13)},
    "tpu": "import ctypes, libtpu; ctypes.CDLL(libtpu.get_library_path())",
    "aot": "from sbpjax.sbp.topology import devices; devices('v5p:2x2x1'); devices('h100:8')",
}  # fmt: skip


class Row(NamedTuple):
    """A finding: its subject, its state (``"ok"``, ``"-"`` or ``"BAD"``) and a text."""

    subject: str
    state: str
    text: str


def findings(devices_s: float = _DEVICES_S) -> Iterator[Row]:
    """Yield the findings in the order of the report, each as soon as it is known.

    Args:
        devices_s: seconds after which a lookup of the devices is given up.
    """
    yield Row("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Row("sbpjax", "ok", VERSION)
    for name in REQUIRED:
        yield _package(name)
    free = free_bytes()
    memory = "unknown memory" if free is None else f"{free / 2**30:.1f} GiB of memory free"
    yield Row("host", "ok", f"{cores()} cores, {memory}")
    yield from _devices(devices_s)
    yield _cache()
    yield _port()
    for extra in EXTRAS:
        yield from _extra(extra, devices_s)
    for name in sorted(os.environ):
        if name.startswith("SBPJAX_") or name in ("XLA_FLAGS", "JAX_PLATFORMS", "MASTER_ADDR", "RANK", "WORLD_SIZE"):
            secret = re.search("TOKEN|SECRET|KEY", name) is not None
            yield Row("variable", "ok", f"{name}={'(set)' if secret else os.environ[name]}")


def _package(name: str) -> Row:
    try:
        return Row(name, "ok", metadata.version(name))
    except metadata.PackageNotFoundError:
        return Row(name, "BAD", f"not installed: pip install {name}")


def _devices(limit_s: float) -> Iterator[Row]:
    code, output, errors = yield from _run("devices", _LIST_DEVICES, limit_s)
    if code is None:
        text = f"no answer within {limit_s:g} s: another process may hold them; JAX_PLATFORMS=cpu does without"
        yield Row("devices", "BAD", text)
    elif code:
        yield Row("devices", "BAD", _last_line(errors, code))
    else:
        yield Row("devices", "ok", output.strip())


def _run(subject: str, program: str, limit_s: float) -> Generator[Row, None, tuple[int | None, str, str]]:
    """Run a program in a process, yield a row every `_REPORT_S` seconds, and return its exit code, stdout and stderr.

    Args:
        subject: of the rows.
        program: its text.
        limit_s: seconds after which it is killed; the code is then None.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    begin = time.monotonic()
    while True:
        left = limit_s - (time.monotonic() - begin)
        try:
            output, errors = process.communicate(timeout=max(min(_REPORT_S, left), 0.0))
            return process.returncode, output, errors
        except subprocess.TimeoutExpired:
            if left > 0:
                yield Row(subject, "...", f"no answer yet after {time.monotonic() - begin:.0f} s")
                continue
            process.kill()
            process.communicate()
            return None, "", ""


def _last_line(errors: str, code: int) -> str:
    return (errors.strip().splitlines()[-1:] or [f"exit code {code}"])[0][:300]


def _cache() -> Row:
    folder = cache_folder.root()
    if folder is None:
        return Row("cache", "-", "off by SBPJAX_CACHE_DIR")
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not os.access(existing, os.W_OK | os.X_OK):
        return Row("cache", "BAD", f"{existing} cannot be written: set SBPJAX_CACHE_DIR to another folder")
    sizes = [file.size for part in cache_folder.files().values() for file in part]
    return Row("cache", "ok", f"{folder}, {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")


def _port() -> Row:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 29500))
    except OSError as error:
        text = f"29500, the launcher's, is taken ({error.strerror}): --master_port 0, or another number"
        return Row("port", "-", text)
    return Row("port", "ok", "29500, the launcher's, is free")


def _extra(extra: str, limit_s: float) -> Iterator[Row]:
    found = [(_distribution(requirement), requirement) for requirement in packages_of(extra)]
    absent = [name for name, _ in found if _version(name) is None]
    if absent:
        yield Row(extra, "-", f"{', '.join(absent)} not installed: {pip_install(extra)}")
        return
    old = [f"{name} {_version(name)}" for name, requirement in found if _is_older(_version(name), requirement)]
    if old:
        yield Row(extra, "BAD", f"{', '.join(old)} too old: {pip_install(extra)}")
        return
    modules = sorted({module for name, _ in found for module in _modules(name)})
    imports = "".join(f"import {module}\n" for module in modules)
    code, _, errors = yield from _run(extra, _LOAD.get(extra, imports), limit_s)
    versions = ", ".join(dict.fromkeys(f"{name} {_version(name)}" for name, _ in found))
    if code == 0:
        yield Row(extra, "ok", versions)
        return
    if extra.startswith("cuda") and not any(map(os.path.exists, _GPU_FILES)):
        yield Row(extra, "ok", f"{versions}: for compiling ahead of time; no GPU here")
        return
    seen = f"no answer within {limit_s:g} s" if code is None else _last_line(errors, code)
    yield Row(extra, "BAD", f"installed, but cannot be loaded ({seen}): {pip_install(extra)}")


def _distribution(requirement: str) -> str:
    """Return the package that a requirement is about: of ``jax[cuda12]`` that of the plugin."""
    match = re.match(r"jax\[(cuda1\d)\]", requirement)
    if match:
        return f"jax-{match[1]}-plugin"
    return "libtpu" if requirement.startswith("jax[tpu]") else re.split(r"[\[<>=~! ]", requirement)[0]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None


def _is_older(version: str | None, requirement: str) -> bool:
    """Return whether a version is below that of a requirement ``name>=version``."""
    least = re.match(r"[\w.-]+>=([\d.]+)", requirement)
    return least is not None and version is not None and _numbers(version) < _numbers(least[1])


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.match(r"[\d.]*", version)[0].split(".") if part]  # type: ignore[index]


def _modules(name: str) -> list[str]:
    """Return the packages that a distribution installs, those inside a namespace by their whole name."""
    folders = [file.parent for file in metadata.files(name) or () if file.name == "__init__.py"]
    depth = min((len(folder.parts) for folder in folders), default=0)
    return [".".join(folder.parts) for folder in folders if len(folder.parts) == depth]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the findings; return 1 if one is bad, else 0."""
    command_parser(__name__).parse_args(arguments)
    bad = 0
    for row in findings():
        bad += row.state == "BAD"
        print(f"{row.subject:10} {row.state:4} {row.text}", flush=True)
    print(f"\n{bad} to mend" if bad else "\nnothing to mend")
    return int(bad > 0)
