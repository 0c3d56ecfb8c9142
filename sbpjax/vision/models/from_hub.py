"""Models of the Hugging Face Hub in timm's layout: ``config.json`` and ``model.safetensors``.

    model = vision.from_hub("timm/resnet18.a1_in1k", num_classes=10)

Files are fetched by `huggingface_hub` into its cache (``HF_HOME``), which other libraries share; a download is gone on
with, and a second process waits for the first. The server names a large file by its SHA-256, and what has come is
compared with that.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from sbpjax import nn
from sbpjax.errors import HubError

from .registry import create_model

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
SHA256 = re.compile(r"[0-9a-f]{64}")
ENV_OFFLINE = "SBPJAX_HUB_OFFLINE"


def from_hub(
    repository: str,
    *,
    revision: str | None = None,
    num_classes: int | None = None,
    architecture: str | None = None,
    endpoint: str | None = None,
    cache_dir: str | os.PathLike | None = None,
    **changes: Any,
) -> nn.Module:
    """Return a model with the weights of a repository; no code in it is run.

    Args:
        repository: ``owner/name``.
        revision: a branch, tag or commit; the main branch by default.
        num_classes: where it is not that of the repository, the classifier begins anew; 0 leaves it out.
        architecture: a name of `list_models`, where ``config.json`` has another, or none.
        endpoint: address of a mirror; by default ``HF_ENDPOINT``.
        cache_dir: where files are kept; by default `huggingface_hub`'s cache.
        **changes: fields of the family's configuration, which the weights fit.

    Returns:
        The model, in training mode, with local parameters.

    Raises:
        HubError: the repository, or a file of it, cannot be reached; it is none of timm's layout; a file has
            not the size or hash of the server; or ``SBPJAX_HUB_OFFLINE`` or ``HF_HUB_OFFLINE`` is set, and it is not
            in the cache.
        ConfigError: there is no such architecture here.
        CheckpointError: the weights are of another model.

    Example:
        >>> model = flow.vision.from_hub("timm/resnet18.a1_in1k", num_classes=10)  # doctest: +SKIP
    """
    where = {"repo_id": repository, "revision": revision, "endpoint": endpoint, "cache_dir": cache_dir}
    operation = f"from_hub({repository!r})"
    config = _config(_fetch_file("config.json", where, operation), operation)
    name = architecture or config.get("architecture")
    if name is None:
        seen = f"a config.json with {', '.join(sorted(config)[:6]) or 'nothing'}"
        seen += f", of the type {config['model_type']!r}" if "model_type" in config else ""
        rule = "config.json of timm's layout names an architecture"
        raise HubError(
            operation, seen, rule, "architecture='...', or models.from_pretrained(directory) for transformers'"
        )
    classes = _classes(config)
    classes = num_classes if classes is None else classes
    weights = _first(WEIGHTS, where, operation)
    model = create_model(name, num_classes=classes, checkpoint=weights, **changes)
    if num_classes is not None and num_classes != classes:
        model.reset_classifier(num_classes)  # type: ignore[operator]
    return model


def _config(path: Path, operation: str) -> dict[str, Any]:
    rule = "config.json is a JSON object"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise HubError(operation, f"config.json: {error}", rule, "another repository or revision") from None
    if not isinstance(found, dict):
        raise HubError(operation, f"config.json is a {type(found).__name__}", rule, "another repository or revision")
    own = found.get("pretrained_cfg") or {}
    for name, value, kind in (
        ("pretrained_cfg", own, dict),
        ("architecture", found.get("architecture"), str),
        ("num_classes", _classes(found), int),
    ):
        if not isinstance(value, (kind, type(None))) or isinstance(value, bool) or (kind is int and (value or 0) < 0):
            rule = f"{name} in config.json is of type {kind.__name__}" + (", from 0" if kind is int else "")
            raise HubError(operation, f"{name}={value!r:.80}", rule, "another repository or revision")
    return found


def _classes(config: dict[str, Any]) -> Any:
    """Return the number of classes in a config.json, None if it has none."""
    own = config.get("pretrained_cfg")
    return config.get("num_classes", own.get("num_classes") if isinstance(own, dict) else None)


def _first(names: tuple[str, ...], where: dict[str, Any], operation: str) -> Path:
    """Return the first of several files that the repository has."""
    from huggingface_hub.errors import EntryNotFoundError  # no dependency

    first: HubError | None = None
    for name in names:
        try:
            return _fetch_file(name, where, operation)
        except HubError as error:
            if not isinstance(error.__cause__, EntryNotFoundError):
                raise
            first = first or error
    assert first is not None
    raise first


def _fetch_file(name: str, where: dict[str, Any], operation: str) -> Path:
    """Return the path of a file of the repository in the cache, downloaded and checked if it was not there."""
    try:
        import huggingface_hub  # no dependency
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError  # likewise
    except ModuleNotFoundError as error:
        rule = "repositories are read by huggingface_hub"
        raise HubError(operation, f"no module {error.name}", rule, "pip install huggingface_hub") from None
    broken = HfHubHTTPError.__bases__[0]  # what its HTTP library raises, which differs between its versions
    place = {key: where[key] for key in ("repo_id", "revision", "cache_dir")}
    there = isinstance(huggingface_hub.try_to_load_from_cache(filename=name, **place), str)
    offline = os.environ.get(ENV_OFFLINE, "0") not in ("", "0") or huggingface_hub.is_offline_mode()
    try:
        path = Path(huggingface_hub.hf_hub_download(filename=name, local_files_only=offline, **where))
    except LocalEntryNotFoundError as error:
        rule = "a file is in the cache, or the server can be reached"
        if offline:
            fix = f"load it once with a connection; then it stays. Or unset {ENV_OFFLINE} and HF_HUB_OFFLINE"
            raise HubError(operation, f"offline mode, and no {name} in the cache", rule, fix) from error
        seen = f"no {name} in the cache, and no connection: {_line(error)}"
        raise HubError(operation, seen, rule, "look at the connection, or HF_ENDPOINT; then call again") from error
    except EntryNotFoundError as error:
        rule = f"the repository has config.json and one of {', '.join(WEIGHTS)}"
        raise HubError(operation, f"no {name} in it", rule, "another repository or revision") from error
    except (broken, OSError, ValueError) as error:
        rule = "the repository can be read, and its files come whole"
        raise HubError(operation, f"{name}: {_line(error)}", rule, "look at the name; then call again") from error
    if not there:
        _check(path, name, operation)
    return path


def _check(path: Path, name: str, operation: str) -> None:
    """Compare a file with the SHA-256 that the server has named it by, if it has; remove it where it is another."""
    blob = Path(os.path.realpath(path))
    if not SHA256.fullmatch(blob.name):
        return
    digest = hashlib.sha256()
    with blob.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    if digest.hexdigest() != blob.name:
        for one in (path, blob):
            with contextlib.suppress(FileNotFoundError):
                one.unlink()
        seen = f"{name} with the SHA-256 {digest.hexdigest()[:12]}…, in place of {blob.name[:12]}…"
        raise HubError(operation, seen, "a file has the hash that the server announces", "call again; it was removed")


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
