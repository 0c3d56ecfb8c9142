"""Entry point of a worker process, started by `sbpjax.data.loading.pool`; it never imports JAX.

Before anything is unpickled, a light package named ``sbpjax`` is installed: the modules of `LIGHT` are the real ones,
tensors are NumPy arrays (`sbpjax.data.loading.host_tensors`), the functions that datasets use on them are NumPy's
(`sbpjax.data.loading.host_functions`), every other name is a `MissingName`, which may be named, subclassed and called
while the user's modules are imported, and not be used after. The user's main module is run again, as ``__mp_main__``,
only if it defines the dataset or a function.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pickle
import runpy
import signal
import socket
import sys
import traceback
import types

LIGHT = (
    "sbpjax.utils",
    "sbpjax.data.loading",
    "sbpjax.data.token_index",
    "sbpjax.train.data",
    "sbpjax.vision.datasets",
    "sbpjax.vision.transforms",
    "sbpjax.errors",
    "sbpjax._core.runtime.signature_errors",
    "sbpjax._core.runtime.user_line",
)
_loading = True  # while the user's modules are imported, absent names may be called


class MissingName(type):
    """A name of sbpjax that workers do not have."""

    def __getattr__(cls, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return make_placeholder(f"{cls.__name__}.{name}")

    def __call__(cls, *args, **kwargs):
        if any("_is_absent" in base.__dict__ for base in cls.__mro__):
            if not _loading:
                raise _refusal(cls.__name__)
            return make_placeholder(f"{cls.__name__}(...)")
        return super().__call__(*args, **kwargs)

    def __bool__(cls) -> bool:
        return not cls.__dict__.get("_is_absent", False)


def make_placeholder(name: str) -> type:
    """Return the placeholder of a name."""
    return MissingName(name, (), {"_is_absent": True})


def _refusal(name: str, kind: str = "WorkerError") -> Exception:
    from sbpjax import errors  # not before the light package is in place

    rule = "workers have no JAX: a dataset makes its samples of NumPy's values and of the common tensor functions"
    fix = "use NumPy for it, do it in the training process, or num_workers=0"
    seen = "a name that only the training process has"
    return getattr(errors, kind)(f"{name} in a data worker", seen, rule, fix)


def _attribute(tensor, name: str):
    """Return a tensor's attribute that the light package lacks: a placeholder while modules are imported."""
    if _loading and not name.startswith("__"):
        return make_placeholder(f"Tensor.{name}")
    raise _refusal(f"Tensor.{name}", "WorkerNameError")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import finder of the absent modules of sbpjax, and of its aliases."""

    def __init__(self, aliases: list[str]) -> None:
        self.aliases = aliases

    def find_spec(self, fullname, path=None, target=None):
        root, _, rest = fullname.partition(".")
        if root in self.aliases or (root == "sbpjax" and not fullname.startswith(LIGHT)):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        root, _, rest = spec.name.partition(".")
        if root in self.aliases:
            return importlib.import_module(f"sbpjax.{rest}" if rest else "sbpjax")
        return _module(spec.name, [])

    def exec_module(self, module):
        pass


def _module(name: str, path: list[str]) -> types.ModuleType:
    def missing(attribute: str):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return make_placeholder(f"{name}.{attribute}")

    module = types.ModuleType(name)
    module.__path__ = path
    module.__getattr__ = missing  # type: ignore[method-assign]
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], own, module)
    return module


def put_light_package(root: str, aliases: list[str]) -> None:
    """Put the light package in place.

    Args:
        root: the directory of sbpjax.
        aliases: its other names.
    """
    package = _module("sbpjax", [root])
    for name in ("utils", "data", "train", "vision", "_core", "_core.runtime"):
        _module(f"sbpjax.{name}", [os.path.join(root, *name.split("."))])
    sys.meta_path.insert(0, _Finder(aliases))
    _module("sbpjax.data.loading.global_loader", [])  # the real one brings JAX, and a module in the place of `tensor`
    from sbpjax.data.loading import host_functions, host_tensors  # not before `sbpjax` is the light package

    for path, function in host_functions.FUNCTIONS.items():
        where, _, name = f"sbpjax.{path}".rpartition(".")
        setattr(importlib.import_module(where), name, function)
    for name, dtype in host_tensors.DTYPES.items():
        setattr(package, name, dtype)
    package.is_light = True  # type: ignore[attr-defined]
    host_tensors.HostTensor.__getattr__ = _attribute  # type: ignore[attr-defined]
    package.Tensor = host_tensors.HostTensor  # type: ignore[attr-defined]


def run_main(kind: str, where: str) -> None:
    """Run the user's main module again, without its ``if __name__ == "__main__"`` part.

    Args:
        kind: ``"module"`` or ``"path"``.
        where: its name, or its file.
    """
    module = types.ModuleType("__mp_main__")
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    run = runpy.run_module if kind == "module" else runpy.run_path
    module.__dict__.update(run(where, run_name="__mp_main__"))


def yield_to_the_training_loop() -> None:
    """Take no processor away from a process that wakes this one.

    A training loop that takes a batch sends the next task, and would be preempted for some ms by a worker that starts
    on it at once. Source: sched(7), SCHED_BATCH.
    """
    if hasattr(os, "SCHED_BATCH"):  # Linux
        with contextlib.suppress(OSError):  # some containers forbid it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def main() -> None:
    """Set up and answer tasks until the other side closes."""
    global _loading
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the training process, which closes the socket
    sock = socket.socket(fileno=int(sys.argv[1]))
    root, parent, by_main_thread = sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1"
    _load_file(root, "_core", "runtime", "parent_death").end_with_parent(parent, by_main_thread)
    yield_to_the_training_loop()
    sys.path[:] = sys.path[1:]  # this file's own directory
    sys.path.insert(0, os.path.dirname(root))
    transport = _load_file(root, "data", "loading", "transport")
    try:
        setup = pickle.loads(transport.receive(sock)[0])
        sys.path[:] = setup["path"]
        sys.argv = setup["argv"]
        put_light_package(root, setup["aliases"])
        from sbpjax.data.loading import fetcher, host_tensors, transport  # of the light package

        try:
            if setup["main"] is not None:
                run_main(*setup["main"])
            job = pickle.loads(setup["job"])
            _loading = False
            info = fetcher.WorkerInfo(setup["id"], setup["workers"], setup["seed"], job["dataset"])
            fetcher.set_worker_info(info)
            fetcher.seed_all(setup["seed"] + setup["id"], 0)
            if job["init"] is not None:
                job["init"](setup["id"])
        except BaseException:
            transport.send(sock, pickle.dumps(("failed", None, _describe_exception(), {})))
            return
        transport.send(sock, pickle.dumps(("ready", None, None, {})))
        _serve_requests(sock, job, info, transport.Arena(host_tensors.HostTensor))
    except (EOFError, ConnectionError):
        pass


def _load_file(root: str, *names: str):
    """Return a module of sbpjax before the light package is there."""
    path = os.path.join(root, *names) + ".py"
    spec = importlib.util.spec_from_file_location(f"_sbpjax_{names[-1]}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _describe_exception() -> tuple:
    """Return the current exception: the module of its class, its name, text and traceback."""
    kind, error, _ = sys.exc_info()
    assert kind is not None
    try:
        text = str(error)
    except Exception as failure:  # of its own __str__
        text = f"its text cannot be made: {type(failure).__name__}"
    home = "__main__" if kind.__module__ == "__mp_main__" else kind.__module__  # the name of the script here
    return (home, kind.__qualname__), kind.__name__, text, traceback.format_exc()


def _serve_requests(sock, job, info, arena) -> None:
    from sbpjax.data.loading import fetcher, transport  # of the light package

    current, ended = None, False
    while True:
        message, _ = transport.receive(sock)
        command, number, index, seed, free = pickle.loads(message)
        arena.free(free)
        if command == "epoch":
            current, ended = None, False
            fetcher.set_worker_info(info._replace(seed=seed))
            continue
        try:
            if ended:
                raise StopIteration
            fetcher.seed_all(seed, number)
            if current is None:
                current = job["fetcher"](job["dataset"])
            value = current.fetch(index)
            data, where, descriptors = arena.pack(value)
        except BaseException as error:
            if isinstance(error, StopIteration) and job["iterable"]:
                ended = True
                transport.send(sock, pickle.dumps(("end", number, None, {})))
                continue
            transport.send(sock, pickle.dumps(("error", number, _describe_exception(), {})))
            continue
        transport.send(sock, pickle.dumps(("batch", number, data, where)), descriptors)


if __name__ == "__main__":
    main()
