"""Files of a LoRA adapter in PEFT's format: ``adapter_config.json``, ``adapter_model.safetensors``.

Neither of PEFT's files has a checksum: a flipped bit is another weight, or another scale. So the tensors that are
written here carry a SHA-256 of themselves and of the fields that scale them, in the metadata of the safetensors file; a
file by another hand has none, and is read without. A name that is nearly the digest's is a damaged one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sbpjax.checkpoint import open_safetensors
from sbpjax.errors import CheckpointError, nearest

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
DIGEST = "sbpjax_sha256"
# Fields of ``adapter_config.json`` that change what an adapter computes, and the values that are built.
ONLY: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "use_dora": (False, None),
    "bias": ("none",),
    "lora_bias": (False, None),
    "layer_replication": (None,),
    "trainable_token_indices": (None,),
}
SCALES = ("r", "lora_alpha", "rank_pattern", "alpha_pattern", "use_rslora", "lora_dropout")


def refuse(operation: str, seen: str, rule: str, fix: str = "check that the adapter is one of this model") -> Any:
    """Raise the error of an adapter that is not read.

    Raises:
        CheckpointError: always.
    """
    raise CheckpointError(operation, seen, rule, fix)


def digest(tensors: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of tensors, with names, dtypes and shapes, and of the fields that scale them.

    Example:
        >>> import numpy as np
        >>> a = {"a": np.zeros(2, np.float32)}
        >>> flow.models.adapter_file.digest(a, {"r": 2}) == flow.models.adapter_file.digest(a, {"r": 3})
        False
    """
    made = hashlib.sha256(json.dumps({name: values.get(name) for name in SCALES}, sort_keys=True).encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        made.update(json.dumps([name, str(array.dtype), list(array.shape)]).encode())
        made.update(memoryview(array.reshape(-1).view(np.uint8)))
    return made.hexdigest()


def read_adapter(directory: Path, operation: str, verify: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the fields and the tensors of an adapter, by their names in the files.

    Args:
        directory: with both files.
        operation: the call, for errors.
        verify: compare them with the SHA-256 that is in the file, if there is one.

    Raises:
        CheckpointError: a file is missing or damaged, or of a kind that is not built.
    """
    values = _config(directory / CONFIG, operation)
    arrays = open_safetensors(directory / TENSORS)
    written = [text for name, text in _metadata(directory / TENSORS).items() if nearest(name, [DIGEST])]
    if verify and written and written != [digest(arrays, values)]:
        rule = (
            f"the SHA-256 of the tensors, and of {', '.join(SCALES)} in {CONFIG}, is that which was written with them"
        )
        fix = "restore the folder; or lora.load(..., verify=False) after an edit on purpose"
        refuse(operation, f"{directory} has another SHA-256: damaged or edited", rule, fix)
    for name, array in arrays.items():
        if array.dtype.kind in "biuc":
            refuse(operation, f"{name} of {array.dtype}", "tensors of an adapter are floating-point numbers")
    return values, arrays


def _metadata(path: Path) -> dict[str, Any]:
    """Return the texts in the head of a file that `open_safetensors` has read."""
    with open(path, "rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    found = head.get("__metadata__")
    return found if isinstance(found, dict) else {}


def _config(path: Path, operation: str) -> dict[str, Any]:
    rule = f"an adapter is a folder with {CONFIG}, a JSON object, and {TENSORS}"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        refuse(operation, f"{type(error).__name__}: {error}", rule)
    if not isinstance(values, dict):
        refuse(operation, f"{CONFIG} holds a {type(values).__name__}", rule)
    for name, built in ONLY.items():
        value = values.get(name, built[0])
        if not any(value is one or (isinstance(value, str) and value == one) for one in built):
            refuse(operation, f"{name}={value!r:.80}", f"adapters are built with {name}={built[0]!r}")
    patterns = {name: values.get(name) for name in ("rank_pattern", "alpha_pattern")}
    for name, pattern in patterns.items():
        if not isinstance(pattern, (dict, type(None))):
            refuse(operation, f"{name}={pattern!r:.80}", f"{name} is a dict of names of layers and numbers")
    numbers = {name: values[name] for name in ("r", "lora_alpha") if name in values}
    for name, pattern in patterns.items():
        numbers |= {f"{name}[{key!r}]": one for key, one in (pattern or {}).items()}
    for name, value in numbers.items():
        if type(value) not in (int, float) or not 0 < value < 2**31 or not math.isfinite(value):
            refuse(operation, f"{name}={value!r:.80}", "ranks and alphas are numbers above 0")
    if not isinstance(values.get("use_rslora"), (bool, type(None))):
        refuse(operation, f"use_rslora={values['use_rslora']!r:.80}", "use_rslora is true or false")
    dropout = values.get("lora_dropout") or 0.0
    if type(dropout) not in (int, float) or not 0 <= dropout < 1:
        refuse(operation, f"lora_dropout={dropout!r:.80}", "0 ≤ lora_dropout < 1")
    return values
