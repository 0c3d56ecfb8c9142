"""``python -m sbpjax doctor``: versions, devices, cache folder, ports, and which extras are installed.

Each row is a fact, marked ``ok``, ``-`` (optional, not installed) or ``BAD``, with the command that mends it. The
devices are looked up in a process of their own: a driver that hangs or aborts becomes a row instead of ending the
command.
"""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import NamedTuple

from sbpjax._core.naming import VERSION
from sbpjax._core.runtime.commands import command_parser
from sbpjax._core.runtime.extras import packages_of, pip_install
from sbpjax._core.runtime.host_limits import cores, free_bytes
from sbpjax._core.serialization import cache_folder

REQUIRED = ("jax", "jaxlib", "flax", "optax", "numpy", "ml-dtypes")
EXTRAS = ("train", "vision", "onnx", "openvino", "iree", "serve", "parquet", "cuda12", "cuda13", "tpu", "aot")
_DEVICES_S = 60.0
_REPORT_S = 10.0
_LIST_DEVICES = """
import collections, jax
kinds = collections.Counter((d.platform, d.device_kind) for d in jax.devices())
print("; ".join(f"{n} x {platform} ({kind})" for (platform, kind), n in kinds.items()))
"""


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
        yield _extra(extra)
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
    lookup = subprocess.Popen(
        [sys.executable, "-c", _LIST_DEVICES], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    begin = time.monotonic()
    while True:
        left = limit_s - (time.monotonic() - begin)
        try:
            output, errors = lookup.communicate(timeout=max(min(_REPORT_S, left), 0.0))
            break
        except subprocess.TimeoutExpired:
            if left > 0:
                yield Row("devices", "...", f"no answer yet after {time.monotonic() - begin:.0f} s")
                continue
            lookup.kill()
            lookup.communicate()
            text = f"no answer within {limit_s:g} s: another process may hold them; JAX_PLATFORMS=cpu does without"
            yield Row("devices", "BAD", text)
            return
    if lookup.returncode:
        last = errors.strip().splitlines()[-1:] or [f"exit code {lookup.returncode}"]
        yield Row("devices", "BAD", last[0][:300])
    else:
        yield Row("devices", "ok", output.strip())


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


def _extra(extra: str) -> Row:
    absent = [name for name in map(_distribution, packages_of(extra)) if not _is_installed(name)]
    if absent:
        return Row(extra, "-", f"{', '.join(absent)} not installed: {pip_install(extra)}")
    return Row(extra, "ok", "extra installed")


def _distribution(requirement: str) -> str:
    """Return the package that a requirement is about: of ``jax[cuda12]`` that of the plugin."""
    match = re.match(r"jax\[(cuda1\d)\]", requirement)
    if match:
        return f"jax-{match[1]}-plugin"
    return "libtpu" if requirement.startswith("jax[tpu]") else re.split(r"[\[<>=~! ]", requirement)[0]


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the findings; return 1 if one is bad, else 0."""
    command_parser(__name__).parse_args(arguments)
    bad = 0
    for row in findings():
        bad += row.state == "BAD"
        print(f"{row.subject:10} {row.state:4} {row.text}", flush=True)
    print(f"\n{bad} to mend" if bad else "\nnothing to mend")
    return int(bad > 0)
