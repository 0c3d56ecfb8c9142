"""Error classes of sbpjax; the docstring of a class is its help page.

An error text has four parts: the operation (op and the user's line), the inputs as seen (shape, dtype, sbp, placement
of each input), the rule that was broken, with numbers, and one line that fixes it. A class is raised with these four:
``raise SbpError(operation, seen, rule, fix)``.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from typing import Any

from sbpjax._core.runtime.user_line import UNKNOWN_LINE, user_line
from sbpjax._core.runtime.user_line import full_tracebacks as full_tracebacks
from sbpjax._core.runtime.user_line import warn as warn

# Names that other libraries give to an argument, by the name here.
_OTHER_NAMES = {
    "cp": "context", "degree": "stage", "dp": "data", "ep": "expert", "epsilon": "eps", "learning_rate": "lr",
    "level": "stage", "lr_scheduler": "lr_sch", "pp": "pipeline", "scheduler": "lr_sch", "tp": "tensor",
    "wd": "weight_decay",
}  # fmt: skip


def message(operation: str, seen: str, rule: str, fix: str) -> str:
    """Return the four-part text of an error.

    Args:
        operation: the operation, in the user's words; the user's line is added.
        seen: the inputs: shape, dtype, sbp, placement of each input.
        rule: the rule that was broken, with its numbers.
        fix: one line that makes it work.
    """
    line = user_line()
    at = "" if line == UNKNOWN_LINE else f" (at {line})"  # a command and a data worker have no line of the user's
    return f"{operation}{at}\n  seen: {seen}\n  rule: {rule}\n  fix:  {fix}"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the known name nearest to a wrong one, None if nothing is near; private names come last."""
    known: dict[str, list[str]] = {}
    names = list(names)
    if (other := _OTHER_NAMES.get(name)) in names:
        return other
    for one in names:
        if name.startswith("_") or not one.startswith("_"):
            known.setdefault(one.lower(), []).append(one)
    near = difflib.get_close_matches(name.lower(), known, 1, 0.65)
    alike = (lambda one: difflib.SequenceMatcher(None, name, one).ratio()) if near else None
    return max(known[near[0]], key=alike) if near else None


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 device``, ``8 devices``, ``1 entry``, ``2 entries``."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def page(name: str) -> str:
    """Return the path of a documentation page: beside the package, or inside it in an installed wheel."""
    package = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(package, "docs", name)
    return inside if os.path.exists(inside) else os.path.join(os.path.dirname(package), "docs", name)


# Rule and fix, wherever ranks wait because only some of them read a global tensor.
READ_BY_ALL = (
    "reading a global tensor is collective: item(), numpy(), tolist() and print(x) run on every rank",
    "value = x.item() on every rank, then if rank == 0: print(value); x.to_local() is a rank's own part",
)
AT_ITS_END = "has come to the end of its program"  # follows a rank; the launcher searches for it
# The same where one of them has already ended.
ENDS_ALIKE = (
    "every rank ends after the same calls: as many steps, batches and reads of global tensors as the others",
    "look why that rank ended: as many batches on every rank (drop_last=True), no return or sys.exit() on some; "
    "item(), numpy() and print(x) of a global tensor on every rank",
)


class SbpjaxError(Exception):
    """Base class of all errors that sbpjax raises for a user's mistake.

    Args:
        parts: the whole text, or the four parts of `message`: operation, inputs, rule and fix.
        named: ``name`` and ``obj``, for errors that are an AttributeError or an ImportError.
    """

    def __init__(self, *parts: str, **named: Any) -> None:
        super().__init__(*([message(*parts)] if len(parts) == 4 else parts), **named)


class PlacementError(SbpjaxError, ValueError, RuntimeError):
    """A placement cannot be made or does not fit: an unknown type, duplicate or missing ranks, or an uneven hierarchy.

    Ranks are global device ids in the order of ``jax.devices()``. On CPU, set up more devices with
    ``SBPJAX_CPU_DEVICES=8`` or ``sbpjax.env.set_cpu_devices(8)`` before first use.
    """


class PlacementTypeError(SbpjaxError, TypeError):
    """An argument of a placement has the wrong type: it is neither a placement, a device type nor integer ranks."""


class SbpError(SbpjaxError, ValueError, RuntimeError):
    """An sbp is malformed or does not fit its tensor or placement.

    An nd-sbp has one entry for each axis of its placement; ``split(d)`` needs ``0 <= d < ndim``.
    """


class SbpTypeError(SbpjaxError, TypeError):
    """An argument that must be an sbp has a different type."""


class MixedTensorError(SbpjaxError, RuntimeError):
    """Inputs of one op are on different placements, or local and global tensors are mixed.

    All inputs of an op must be local, or on the same placement with the same hierarchy. Python scalars, NumPy scalars
    and 0-d local tensors can be mixed with any tensor. Move a tensor with ``x.to_global(placement, sbp)``.
    """


class BoxingError(SbpjaxError, RuntimeError):
    """A requested boxing is forbidden by the current ``boxing_policy``, or is impossible."""


class BoxingWarning(UserWarning):
    """An op moved data between ranks while ``boxing_policy("warn")`` was set."""


class DeviceStateError(SbpjaxError, RuntimeError):
    """Devices were configured after JAX had initialised them."""


class DistributedError(SbpjaxError, RuntimeError):
    """The setup or communication of several processes failed: a launcher, coordinator, group or collective."""


class LostRankError(DistributedError, TimeoutError):
    """Ranks did not reach a barrier or rendezvous, or stopped responding.

    A process waits for the others at `to_global`, a collective, a barrier or the start. The text names the ranks that
    are missing. Usually one of them failed earlier: look at its own output first.
    """


class RankFailedError(DistributedError):
    """A notebook cell under ``%%ranks`` failed on a rank; the text is that rank's traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return the text that IPython shows: no frames of the launcher."""
        return str(self).splitlines()


class AgreementError(DistributedError):
    """Ranks differ in an operation, shape, program or version that must be the same on all ranks."""


class EncodingError(SbpjaxError, ValueError):
    """Bytes are not an encoded value, or a value cannot be encoded; see `_core.serialization.encoding`.

    Messages between processes hold only plain values and NumPy arrays, so reading them runs no code.
    """


class EncodingTypeError(EncodingError, TypeError):
    """A value contains an object that the encoding does not support; the text gives its position and type."""


class SignatureError(SbpjaxError, ValueError):
    """Bytes are not signed with this key: they were signed with another key, or changed later. Nothing was read."""


class ForeignMessageError(DistributedError, SignatureError):
    """A message comes from a writer without this job's secret, or a rank has a different secret.

    ``docs/explanation/security.md`` describes the secret of a job, and when to set it yourself: with
    ``SBPJAX_JOB_SECRET`` or ``SBPJAX_JOB_SECRET_FILE``, to the same secret on every rank.
    """


class UnsafeFileError(SbpjaxError, PermissionError):
    """A cache, key or secret is not trusted, because other users own it or may write to it."""


class AbstractError(SbpjaxError, NotImplementedError):
    """An abstract tensor, which has no elements, was read, passed to a program that runs, or sent to a device.

    Tensors made under ``sbpjax.abstract()``, on ``device="meta"`` or on a ``placement.topology(...)`` are abstract: ops
    on them give shapes and layouts, and programs on them are compiled and measured. `Module.to_empty` allocates
    memory for a module's tensors on devices of this machine.
    """


class OutOfMemoryError(SbpjaxError, RuntimeError):
    """A tensor or a program needs more memory than its device has, or more bytes than can be counted (2^63).

    It is raised before anything runs. For new tensors and results of ops on CPUs, the limit is the memory that the
    machine, its container and ``ulimit -v`` leave available; for compiled programs, the compiler reports that the
    memory does not suffice. On CPU, it is also raised if a process holds so many programs that the system has no memory
    mappings left for another one.
    """


class RuleError(SbpjaxError, RuntimeError):
    """A rule of the primitive table does not fit its equation: a bug in sbpjax, not a user's mistake."""


class AutogradError(SbpjaxError, RuntimeError):
    """Backward cannot run: the graph is missing or freed, a saved tensor was changed, or a gradient does not fit.

    A graph is freed by its first ``backward()``; ``retain_graph=True`` keeps it. A tensor that backward needs must
    not be changed in place between the op and ``backward()``: use the out-of-place op, or write to a ``clone()``.
    """


class InplaceError(SbpjaxError, RuntimeError):
    """A tensor cannot be written in place.

    A leaf that requires grad can be written only under ``no_grad()``. The result of an in-place op must have the
    tensor's shape, and a dtype that can be cast to the tensor's. A tensor with sbp ``partial_sum`` allows only linear
    ops.
    """


class OpError(SbpjaxError, RuntimeError, ValueError):
    """The inputs of an op do not match: their shapes do not broadcast, or their sizes differ.

    PyTorch raises RuntimeError from ops written in C++ and ValueError from those written in Python; this error is both.
    """


class OpTypeError(SbpjaxError, TypeError, NotImplementedError):
    """An argument of an op has the wrong type, or a dtype that the op does not support.

    PyTorch raises TypeError for a wrong type, and NotImplementedError or RuntimeError for an unsupported dtype; this
    error is all three.
    """


class OpIndexError(SbpjaxError, IndexError, RuntimeError):
    """A dim or an index is out of range for the tensor."""


class OpBoundsError(OpIndexError):
    """An index tensor contains an index that is out of range.

    PyTorch raises IndexError from some index ops and RuntimeError from others; this error is both. Only an index that
    is available on the CPU is checked. Elsewhere, an index that is out of range reads NaN and writes nothing.
    """


class OpValueError(SbpjaxError, ValueError, RuntimeError):
    """An argument of an op has a value that is out of range."""


class OpAssertionError(OpValueError, AssertionError):
    """Arguments of a layer do not match, in a case for which PyTorch raises an ``AssertionError``."""


class OpOverflowError(OpValueError, OverflowError):
    """An integer has more than 64 bits, so it does not fit into a tensor."""


class OpNotSupportedError(SbpjaxError, NotImplementedError, RuntimeError):
    """The op, like PyTorch's, does not support this combination of options."""


class ImmutableError(SbpjaxError, AttributeError):
    """An attribute was set on an object that all tensors share, such as a dtype."""


class LinAlgError(SbpjaxError, RuntimeError):
    """A matrix lacks a required property: it is singular, or not positive definite.

    It is raised where the result is available: on the CPU, outside compiled programs. Elsewhere the result holds
    infinities or NaN, and the functions that end in ``_ex`` return the position in `info`.
    """


class CheckpointError(SbpjaxError, RuntimeError):
    """A checkpoint cannot be written or read.

    A checkpoint holds dicts, lists and tuples of tensors, NumPy arrays and plain values; objects are saved as their
    ``state_dict()``.
    """


class TableError(SbpjaxError, ValueError, RuntimeError):
    """An embedding table of `sbpjax.one_embedding` is full, or its files do not match it.

    Rows are kept in a store, in memory or in files; a cache on the devices holds the rows of the current step. A
    snapshot is a directory that is either complete or missing.
    """


class ConfigError(SbpjaxError, ValueError):
    """A field of a model's configuration is missing or unknown, or contradicts another.

    Fields have the names of Hugging Face's ``config.json``. A field unknown to the family is rejected: a model that
    ignores it might compute something else.
    """


class TrainError(SbpjaxError, ValueError, RuntimeError):
    """A training run cannot start or continue: its parts do not match, or its directory belongs to another run."""


class ServingError(SbpjaxError, ValueError, RuntimeError):
    """A model cannot be served: its files, an option or a request is invalid, or no server can be started.

    A model repository is organised like Triton's; ``<model>/<version>/model`` is a directory that ``graph.export``
    wrote.
    """


class BusyError(ServingError):
    """The queue of an engine is full; retry later. Over HTTP, this is status 429."""


class ModuleKeyError(SbpjaxError, KeyError):
    """A module cannot be registered under a name, or has no entry under a key.

    A name must be a string without dots, and must not be the name of another attribute.
    """

    __str__ = Exception.__str__  # a KeyError's own shows line breaks as \n


class ModuleAttributeError(SbpjaxError, AttributeError):
    """A module has no such attribute, or its base class was not initialised.

    Call ``super().__init__()`` first in the ``__init__`` of every module.
    """


class ModuleMethodError(SbpjaxError, NotImplementedError):
    """A class lacks a required method: ``forward`` of a module, or forward and backward of a Function."""


class StateDictError(SbpjaxError, RuntimeError):
    """A state does not fit its module or optimizer: names or shapes differ, or only one of them has global tensors.

    Nothing was loaded. ``sbpjax.utils.global_view.to_global(state, placement, sbp)`` and ``to_local(state)`` convert
    all tensors of a state.
    """


class GraphError(SbpjaxError, RuntimeError):
    """A graph cannot be built, compiled or run.

    A failed build leaves modules, optimizers and the graph as they were; correct the cause and call the graph again.
    """


class GraphTypeError(GraphError, TypeError):
    """An argument of a graph has the wrong type; for example, it is static but cannot be hashed."""


class GraphConfigError(GraphError, ValueError):
    """An option of ``graph.config`` is unknown, or its value is out of range."""


class NanError(GraphError, FloatingPointError):
    """Under ``jax.debug_nans``, an op or a graph step produced a NaN; a failed step leaves parameters unchanged."""


class StaticInputError(GraphError):
    """A graph with ``config.set_static_inputs(True)`` was called with different shapes, dtypes, layouts or values."""


class ExportError(GraphError):
    """A graph cannot be exported, or the files of an exported graph cannot be loaded here.

    An export is a directory of files that belong together: a manifest, a program in several forms, and weights. Nothing
    was written or loaded; ``manifest.json`` describes the inputs of the program and its number of devices.
    """


class EngineError(GraphError):
    """Another engine cannot run a graph: it is not installed, lacks an operation, or gives a different result.

    An engine runs only graphs that compute on one device, without an optimizer, writes into buffers or random numbers.
    The graph itself is unchanged; without the engine, XLA runs it.
    """


class DataDependentError(OpTypeError):
    """Python code needs the value of a tensor inside a traced program: ``if x``, ``int(x)``, ``x.item()``.

    A traced program is compiled before any value exists. ``sbpjax.where(condition, a, b)`` chooses elements;
    ``sbpjax.cond(condition, true_fn, false_fn, *operands)`` chooses a branch.
    """


class DataError(SbpjaxError, ValueError):
    """The arguments of a dataset, a sampler or a loader do not match."""


class DataTypeError(SbpjaxError, TypeError):
    """Samples cannot be collated into a batch: their type is unknown, or their sizes differ.

    `sbpjax.utils.data.DataLoader` takes a ``collate_fn`` that makes a batch from a list of samples.
    """


class DistributionError(SbpjaxError, ValueError):
    """Parameters of a distribution, or a value given to it, are outside its domain."""


class HubError(SbpjaxError, RuntimeError, ValueError):
    """A model or a state could not be downloaded: no connection, a different hash, or an untrusted repository."""


class WorkerError(SbpjaxError, RuntimeError):
    """A data worker failed: it died, its dataset cannot be sent to it, or it used a name that workers lack.

    Workers do not import JAX: a dataset must build samples from Python and NumPy values. A script that defines its own
    dataset must have its main program under ``if __name__ == "__main__":``.
    """


class WorkerModuleError(WorkerError):
    """A dataset for data workers holds a module. Running a module needs JAX, which workers do not import.

    With sbpjax imported as `torch`, a program continues without workers instead.
    """


class WorkerNameError(WorkerError, AttributeError):
    """Tensors in data workers lack this method; they have only the methods that datasets use."""


class WorkerTimeoutError(WorkerError, TimeoutError):
    """No batch arrived from the workers within the ``timeout`` of the loader."""


class UnknownNameError(SbpjaxError, AttributeError):
    """A name used under an alias (`sbpjax.mock_torch`) does not exist in sbpjax; see docs/reference/api_coverage.md."""


class MissingNameError(SbpjaxError, AttributeError):
    """A module of sbpjax has no such name; the text suggests the nearest existing name."""

    module = ""

    @classmethod
    def for_name(cls, module: str, name: str) -> MissingNameError:
        """Return the error for a name of a module."""
        self = cls(f"module {module!r} has no attribute {name!r}", name=name)
        self.module = module
        return self

    def __str__(self) -> str:  # built lazily: most callers use `hasattr` and read no text
        near = None if self.name is None else nearest(self.name, dir(sys.modules.get(self.module)))
        return super().__str__() + (f". Did you mean: {near!r}?" if near else "")


class UnknownModuleError(SbpjaxError, ModuleNotFoundError):
    """A module imported under an alias (`sbpjax.mock_torch`) does not exist in sbpjax."""


class NotInJaxError(SbpjaxError, NotImplementedError, RuntimeError):
    """A feature belongs to another runtime (TorchScript, torch.fx, C++ extensions) and has no counterpart in JAX."""


class LibraryLoadError(SbpjaxError, OSError):
    """A shared library of operators, compiled against PyTorch's own runtime, cannot be loaded into XLA."""


class AbsentError(SbpjaxError, AttributeError):
    """A OneFlow name has no meaning in sbpjax: a kernel, a reader of OneFlow's files, or an option of its compiler.

    The text names a replacement; `docs/reference/api_coverage.md` lists all replacements.
    ``hasattr`` is False for such a name.
    """


def __dir__() -> list[str]:
    own = {name for name, value in globals().items() if getattr(value, "__module__", __name__) == __name__}
    return sorted(name for name in own if not name.startswith("_") and not isinstance(globals()[name], type(sys)))
