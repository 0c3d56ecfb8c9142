"""Downloads of models and state dicts; re-exported by `sbpjax.hub`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from sbpjax._core.serialization import signing
from sbpjax._core.tensor import Tensor
from sbpjax.data import save_load
from sbpjax.errors import HubError

from .download import CHUNK_BYTES, download_url_to_file
from .download import ENV_GITHUB_TOKEN as ENV_GITHUB_TOKEN

ENV_SBPJAX_HOME = "SBPJAX_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
READ_DATA_CHUNK = CHUNK_BYTES
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")

_dir: str | None = None


class _Counter:
    """A count of progress without a bar, where the package tqdm is missing."""

    def __init__(self, iterable: Any = None, **options: Any) -> None:
        self.n = 0
        self._of = iterable

    def __iter__(self) -> Any:
        return iter(self._of)

    def update(self, n: int = 1) -> None:
        """Count some more."""
        self.n += n

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> _Counter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def tqdm(*args: Any, **options: Any) -> Any:
    """Return the package tqdm's bar of progress, for libraries that take it from here; a plain count without it."""
    found = importlib.util.find_spec("tqdm")
    return _Counter(*args[:1], **options) if found is None else importlib.import_module("tqdm").tqdm(*args, **options)


def get_dir() -> str:
    """Return the folder of downloads: that of `set_dir`, else ``$SBPJAX_HOME/hub``, else ``~/.cache/sbpjax/hub``."""
    if _dir is not None:
        return _dir
    cache = os.path.expanduser(os.environ.get(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR))
    return os.path.join(os.environ.get(ENV_SBPJAX_HOME, os.path.join(cache, "sbpjax")), "hub")


def _get_torch_home() -> str:
    """Return the directory that holds ``hub``, under the name by which PyTorch's libraries find it."""
    return os.path.dirname(get_dir())


def set_dir(d: str | os.PathLike) -> None:
    """Set the folder of downloads."""
    global _dir
    _dir = os.path.expanduser(os.fspath(d))


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
) -> dict[str, Any]:
    """Return a state dict from a URL, downloaded once; no code in the file is run.

    Args:
        url: of a PyTorch file with tensors alone, a ``.safetensors`` file, or a zip of a directory of `sbpjax.save`.
            A download that broke off is gone on with.
        model_dir: the folder of downloads; ``get_dir()/checkpoints`` if not given.
        map_location: the device of the tensors.
        progress: print progress.
        check_hash: whether the name holds the beginning of its hash, as ``resnet18-f37072fd.pth``.
        file_name: its name in `model_dir`.

    Raises:
        HubError: it cannot be reached, its hash is another, or it is not there and ``SBPJAX_HUB_OFFLINE`` is set.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else os.path.expanduser(model_dir)
    if model_dir is None:
        signing.make_folder(folder)
    name = file_name or os.path.basename(urlparse(url).path)
    if name in ("", ".", ".."):
        rule = "the URL ends in the name of a file, or file_name= gives one"
        operation = f"load_state_dict_from_url({url!r})"
        raise HubError(operation, f"the name {name!r}", rule, 'file_name="model.pth"')
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        found = HASH_REGEX.search(name) if check_hash else None
        if check_hash and (found is None or not found.group(1)):
            operation, rule = (
                f"load_state_dict_from_url({url!r}, check_hash=True)",
                "the name holds the hash's beginning",
            )
            raise HubError(
                operation, f"the name {name!r}", rule, "a name like resnet18-f37072fd.pth, or check_hash=False"
            )
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    state = save_load.load(path)
    if map_location is None:
        return state
    return {k: v.to(map_location) if isinstance(v, Tensor) else v for k, v in state.items()}


load_url = load_state_dict_from_url


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Return the result of an entry of a repository's ``hubconf.py``.

    Args:
        repo_or_dir: a directory, or ``owner/name[:ref]`` on GitHub.
        model: the entry.
        args: its arguments.
        source: ``"local"`` or ``"github"``.
        trust_repo: whether the code of a GitHub repository may be run.
        force_reload: download anew.
        verbose: print progress.
        skip_validation: accepted.
        kwargs: its arguments by name.

    Raises:
        HubError: the repository cannot be reached or is not trusted, or has no such entry.
    """
    return _entry(_hubconf(repo_or_dir, source, trust_repo, force_reload, verbose), model)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
    source: str = "github",
) -> Any:
    """Return the entries of a repository; see `load`."""
    conf = _hubconf(github, source, trust_repo, force_reload, False)
    return [name for name, value in vars(conf).items() if callable(value) and not name.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
    source: str = "github",
) -> str | None:
    """Return the docstring of a repository's entry; see `load`."""
    return _entry(_hubconf(github, source, trust_repo, force_reload, False), model).__doc__


def _entry(conf: ModuleType, name: str) -> Callable:
    found = getattr(conf, name, None)
    if not callable(found):
        entries = [n for n, v in vars(conf).items() if callable(v) and not n.startswith("_")]
        rule = f"Cannot find callable {name} in hubconf"
        raise HubError(f"hub entry {name!r}", f"{conf.__file__} with {entries}", rule, "hub.list(repository)")
    return found


def _hubconf(where: str, source: str, trust_repo: Any, force_reload: bool, verbose: bool) -> ModuleType:
    if source not in ("github", "local"):
        rule = f'Unknown source: "{source}". Allowed values: "github" | "local".'
        raise HubError(f"hub.load({where!r})", f"source={source!r}", rule, "source='local'")
    folder = (
        Path(where).expanduser()
        if source == "local"
        else _download_repository(where, trust_repo, force_reload, verbose)
    )
    path = folder / MODULE_HUBCONF
    if not path.exists():
        rule = f"a repository has a {MODULE_HUBCONF} whose functions are its entries"
        raise HubError(f"hub.load({where!r})", f"no {path}", rule, "another directory")
    sys.path.insert(0, str(folder))
    try:
        # From its source: bytecode of a file that changed within a second and kept its size is that of the text before.
        module = ModuleType("hubconf")
        module.__file__ = str(path)
        exec(compile(path.read_bytes(), path, "exec"), vars(module))
    finally:
        sys.path.remove(str(folder))
    absent = [name for name in getattr(module, VAR_DEPENDENCY, ()) if importlib.util.find_spec(name) is None]
    if absent:
        rule = f"Missing dependencies: {', '.join(absent)}"
        raise HubError(f"hub.load({where!r})", str(path), rule, f"pip install {' '.join(absent)}")
    return module


def _download_repository(github: str, trust_repo: Any, force_reload: bool, verbose: bool) -> Path:
    repository, _, ref = github.partition(":")
    ref = ref or "main"
    if trust_repo is not True:
        rule = "hub.load runs the code of that repository, which is to be trusted first"
        raise HubError(f"hub.load({github!r})", f"trust_repo={trust_repo!r}", rule, "trust_repo=True")
    try:
        signing.private_folder(get_dir())  # the code in it is run
    except OSError as error:
        rule = "code is run from a directory that no other user can write to"
        raise HubError(f"hub.load({github!r})", str(error), rule, "hub.set_dir(path)") from None
    target = Path(get_dir()) / f"{repository}_{ref}".replace("/", "_")
    if target.exists() and not force_reload:
        return target
    with tempfile.TemporaryDirectory() as folder:
        archive = os.path.join(folder, "archive.zip")
        download_url_to_file(f"https://github.com/{repository}/zipball/{ref}", archive, None, verbose)
        with zipfile.ZipFile(archive) as file:
            file.extractall(os.path.join(folder, "files"))
        (top,) = os.listdir(os.path.join(folder, "files"))
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(os.path.join(folder, "files", top), target)
    return target
