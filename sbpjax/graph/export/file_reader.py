"""Reader of exported graphs: checks completeness and digests; unsigned programs must be harmless.

A program from a file is checked before it may run (`sbpjax.graph.export.custom_calls`). A *key* shared with the
exporter replaces the check: `manifest.sig` is the signature of the manifest, and the manifest holds the digests of the
program and of the weights. With ``trust=True`` the user takes responsibility.
"""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.serialization.signing import TAG_BYTES, sign, verify_signature
from sbpjax.errors import ExportError, SignatureError

from . import manifest

safetensors = LazyModule("safetensors")
custom_calls = LazyModule("sbpjax.graph.export.custom_calls")  # of MLIR


_CONTEXT = "the manifest of an exported graph"
_LEAST_KEY = 16  # bytes
_PARSE_SECONDS = 60
_PARSE = f"""
import signal
import sys
signal.alarm({_PARSE_SECONDS})  # also where no process waits for it any more
from jaxlib.mlir import ir  # what jax.extend.mlir is, without the time to import JAX
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
context = ir.Context()
for dialect in (stablehlo, chlo, sdy):
    dialect.register_dialect(context)
with context:
    try:
        stablehlo.deserialize_portable_artifact(context, sys.stdin.buffer.read())
    except ValueError as error:
        sys.exit(str(error))
"""


def checked_key(key: Any, operation: str) -> bytes:
    """Return a key.

    Raises:
        SignatureError: it is none, or too short to protect anything.
    """
    if isinstance(key, bytes) and len(key) >= _LEAST_KEY:
        return key
    seen = f"{len(key)} bytes" if isinstance(key, bytes) else f"a {type(key).__name__}"
    rule = f"a key is at least {_LEAST_KEY} bytes that no one can guess"
    raise SignatureError(
        operation,
        f"key= of {seen}",
        rule,
        "key=sbpjax.graph.private_key(), or secrets.token_bytes(32)",
    )


def signature(key: bytes, content: bytes) -> bytes:
    """Return the signature of a manifest."""
    return sign(key, _CONTEXT, content)[:TAG_BYTES]


def check_signature(folder: Path, key: bytes, content: bytes, operation: str) -> None:
    """Compare the signature of the manifest that was read.

    Raises:
        SignatureError: there is none, or it is not of this key.
    """
    path = folder / manifest.SIGNATURE
    if not path.is_file():
        seen, rule = f"no {manifest.SIGNATURE}", "with key= only files exported with that key are loaded"
        raise SignatureError(operation, seen, rule, "graph.export(path, ..., key=key)")
    with open(path, "rb") as file:
        tag = file.read(TAG_BYTES)
    # The content that was read before, not the file again: it may be another one by now.
    verify_signature(key, _CONTEXT, tag + content)


def program(folder: Path, found: dict, operation: str, vouched: bool) -> jax.export.Exported:
    """Return the program of an export.

    Args:
        folder: where it is.
        found: its manifest.
        operation: the user's request, for errors.
        vouched: the program is signed, or the user trusts it: all calls are allowed but those into Python of another
            process.

    Raises:
        ExportError: the file is damaged, of another version of JAX, or has a forbidden call.
    """
    blob = (folder / manifest.PROGRAM).read_bytes()
    recorded = found["program"]
    # Compared even without a key: this separates a file that was cut off from one that JAX cannot read.
    if not same_digest(hashlib.sha256(blob).hexdigest(), recorded.get("sha256")):
        seen = f"{manifest.PROGRAM} of {len(blob)} bytes, not those that {manifest.MANIFEST} was written with"
        raise manifest.damaged_error(operation, seen)
    calling = recorded.get("calling_convention_version")
    least = jax.export.minimum_supported_calling_convention_version
    most = jax.export.maximum_supported_calling_convention_version
    if calling.__class__ is not int or not least <= calling <= most:
        raise _version(operation, found, f"a program of calling convention {calling}", f"reads {least} to {most}")
    try:
        exported = jax.export.deserialize(bytearray(blob))
        # Before anything of it is compiled: compiling runs passes that read the attributes of its calls.
        _check_calls(exported, operation, vouched)
    except ExportError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise _version(operation, found, f"a program that cannot be read: {lines[0]}", "does not read it") from error
    return exported


def same_digest(made: str, recorded: Any) -> bool:
    """Return whether a digest is the stated one."""
    # `compare_digest` raises for text that is not ASCII, and a manifest may hold anything.
    return isinstance(recorded, str) and recorded.isascii() and hmac.compare_digest(made, recorded)


def _check_calls(exported: jax.export.Exported, operation: str, vouched: bool) -> None:
    if not vouched:
        _parse_in_subprocess(exported.mlir_module_serialized)
    module = custom_calls.parse_program(exported.mlir_module_serialized)
    if exported.ordered_effects or exported.unordered_effects or (found := custom_calls.callbacks(module)):
        effects = ", ".join(found) if not exported.ordered_effects + exported.unordered_effects else "effects"
        rule = "a call back into Python is a number for an object of the process that exported"
        raise ExportError(operation, f"a program with {effects}", rule, "export the graph without it")
    if not vouched and (found := custom_calls.unsafe_operations(module)):
        more = f" and {len(found) - 4} more" if len(found) > 4 else ""
        raise ExportError(
            operation,
            "a program with " + "; ".join(found[:4]) + more,
            "an unsigned program calls no code outside of it but known functions of linear algebra, on buffers of "
            "the sizes that they write",
            "export and load it with key=, or load_graph(path, trust=True) if you know who wrote it",
        )


def _parse_in_subprocess(text: bytes) -> None:
    """Parse a program in a process of its own first: the parser is native code, and a crafted file may end it."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PARSE], input=text, capture_output=True, timeout=_PARSE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"reading it took more than {_PARSE_SECONDS} s") from None
    # Also where the parser refused it in words: it may have spoilt the memory before.
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines() or [""]
        raise ValueError(f"a process that read it ended with code {done.returncode}: {words[-1][:200]}")


def _version(operation: str, found: dict, seen: str, able: str) -> ExportError:
    made = found["packages"]
    return ExportError(
        operation,
        f"{seen}, written by jax {made.get('jax')} and sbpjax {made.get('sbpjax')}",
        f"jax {jax.__version__} {able}",
        f'pip install "jax=={made.get("jax")}", or export again with this version',
    )


def weights(folder: Path, found: dict, operation: str) -> dict[str, np.ndarray]:
    """Return the arrays of the weights file by name.

    Raises:
        ExportError: the file is damaged, or does not fit the manifest.
    """
    path, state = folder / manifest.WEIGHTS, found["state"]
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not same_digest(digest, found["weights"].get("sha256")):
        raise manifest.damaged_error(
            operation, f"{manifest.WEIGHTS}, not that which {manifest.MANIFEST} was written with"
        )
    wanted = [*state["tensors"], *state["captured"]]
    try:
        with safetensors.safe_open(path, "np") as file:
            names = set(file.keys())
            missing = [t["path"] for t in wanted if t["path"] not in names]
            if missing:
                raise manifest.damaged_error(operation, f"{manifest.WEIGHTS} without {', '.join(missing[:5])}")
            read = {t["path"]: file.get_tensor(t["path"]) for t in wanted}
    except safetensors.SafetensorError as error:
        raise manifest.damaged_error(operation, f"{manifest.WEIGHTS} cannot be read: {error}") from None
    for facts in wanted:
        array = read[facts["path"]]
        kept = facts["stored_as"] or facts["dtype"]
        shape = tuple(facts["shape"]) + ((np.dtype(facts["dtype"]).itemsize,) if facts["stored_as"] else ())
        if array.dtype.name != kept or array.shape != shape:
            seen = f"{facts['path']} of {array.dtype.name}{list(array.shape)} in {manifest.WEIGHTS}, "
            raise manifest.damaged_error(operation, seen + f"{kept}{list(shape)} by {manifest.MANIFEST}")
    return read
