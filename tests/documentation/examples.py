"""The examples in the docstrings of the installed PyTorch, and what they give when they are run.

Nothing of them is kept here: they are read from PyTorch when a test runs. An example is a list of statements; the value
of each, or the error, is described plainly, so that two libraries can be compared. Samples are drawn by NumPy for both.
Run with two seeds, PyTorch shows which values are a matter of chance: of these, dtype and shape are compared.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import importlib
import io
import warnings
import zlib

import numpy as np

MODULES = (
    "torch torch.Tensor torch.nn torch.nn.functional torch.linalg torch.fft torch.special torch.optim "
    "torch.optim.lr_scheduler torch.nn.init torch.nn.utils torch.nn.utils.rnn torch.nn.utils.parametrize "
    "torch.autograd torch.autograd.functional torch.autograd.graph torch.distributions torch.utils.data "
    "torch.utils.checkpoint torch.func torch.optim.swa_utils torch.nn.Module"
).split()


@functools.cache
def examples() -> dict[str, list[str]]:
    """Return the statements of the examples of every public name that has some."""
    parser, found, seen = doctest.DocTestParser(), {}, set()
    for path in MODULES:
        space = _resolved(path)
        for name in sorted(n for n in dir(space) if not n.startswith("_")):
            value = getattr(space, name, None)
            text = getattr(value, "__doc__", None)
            if not isinstance(text, str) or ">>>" not in text or (id(value) in seen and path != "torch.Tensor"):
                continue
            seen.add(id(value))
            try:
                found[f"{path}.{name}"] = [e.source for e in parser.get_examples(text)]
            except ValueError:  # not written as doctest wants it
                continue
    return found


def _resolved(path: str):
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        parent, _, last = path.rpartition(".")
        return getattr(importlib.import_module(parent), last)


def outcomes(library, name: str, seed: int) -> list:
    """Run the statements of an example with a library, and return ``(kind, description)`` of each."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    space = {"torch": library, "nn": library.nn, "F": library.nn.functional, "np": np, "optim": library.optim}
    space["init"] = library.nn.init
    library.manual_seed(seed)
    np.random.seed(seed)
    found = []
    with _drawn(library, rng), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            for source in examples()[name]:
                try:
                    found.append(("value", described(library, _run(source, space))))
                except Exception as error:
                    found.append(("error", f"{type(error).__name__}: {error}"))
        finally:  # some set what the next ones would go by
            library.set_default_device(None)
            library.set_default_dtype(library.float32)
    return found


def _run(source: str, space: dict):
    try:
        return eval(compile(source.strip(), "<example>", "eval"), space)
    except SyntaxError:
        exec(compile(source, "<example>", "exec"), space)
        return space.get(source.split("=")[0].strip())


@contextlib.contextmanager
def _drawn(library, rng):
    """Let the functions that draw samples draw them from a generator of NumPy's."""

    def made(values, options):
        dtype = options.get("dtype")
        tensor = library.tensor(np.asarray(values)).to(dtype or library.float32)
        return tensor.requires_grad_() if options.get("requires_grad") else tensor

    def shape(size):
        return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size

    def randn(*size, **options):
        return made(rng.standard_normal(options.get("size") or shape(size)), options)

    def rand(*size, **options):
        return made(rng.random(options.get("size") or shape(size)), options)

    def empty(*size, **options):  # memory as it happens to be
        return made(np.ones(options.get("size") or shape(size)), options)

    def randint(low, *rest, **options):
        high, size = (rest[0], rest[1]) if len(rest) > 1 else (options.get("high"), rest[0] if rest else None)
        low, high = (0, low) if high is None else (low, high)
        values = rng.integers(low, high, tuple(options.get("size") or size))
        return made(values, {"dtype": library.int64, **options})

    with library.device("meta"):  # PyTorch lists what goes by a default device once: the functions themselves, here
        library.zeros(1)
    names = {"randn": randn, "rand": rand, "empty": empty, "randint": randint}
    space = vars(library)  # an alias answers for what is not in it
    before = {name: space[name] for name in names if name in space}
    space.update(names)
    try:
        yield
    finally:
        for name in names:
            space.pop(name, None)
        space.update(before)


def described(library, value):
    """Return what two libraries should agree on in a value."""
    if isinstance(value, library.Tensor):
        plain = value.detach()
        plain = plain.float() if value.dtype == library.bfloat16 else plain.resolve_conj().resolve_neg()
        return "tensor", str(value.dtype), tuple(value.shape), plain.numpy().copy(), bool(value.requires_grad)
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return type(value).__name__, value
    if isinstance(value, (tuple, list)):
        return "sequence", [described(library, each) for each in value]
    if isinstance(value, dict):
        return "mapping", [(str(key), described(library, each)) for key, each in value.items()]
    return "other", type(value).__name__


def difference(got, want, chance: bool) -> str | None:
    """Return what two descriptions differ in; of values of chance, only the kind counts."""
    if got[0] != want[0]:
        return f"{str(got)[:100]} for {str(want)[:100]}"
    if want[0] == "tensor":
        for i, part in ((1, "dtype"), (2, "shape"), (4, "requires_grad")):
            if got[i] != want[i]:
                return f"{part} {got[i]} for {want[i]}"
        close = chance or np.allclose(got[3], want[3], rtol=2e-3, atol=2e-4, equal_nan=True)
        return None if close else f"{got[3].ravel()[:6]} for {want[3].ravel()[:6]}"
    if want[0] in ("sequence", "mapping"):
        if len(got[1]) != len(want[1]):
            return f"{len(got[1])} elements for {len(want[1])}"
        pairs = [(a, b) if want[0] == "sequence" else (a[1], b[1]) for a, b in zip(got[1], want[1], strict=True)]
        return next(filter(None, (difference(a, b, chance) for a, b in pairs)), None)
    if chance or want[0] == "other" or got[1] == want[1]:
        return None
    if isinstance(want[1], (float, complex)) and np.isclose(got[1], want[1], rtol=1e-3, equal_nan=True):
        return None
    return f"{got[1]!r:.100} for {want[1]!r:.100}"
