"""Allowlist of callables for configuration files: parts of sbpjax, and packages that the caller allows.

    model: {_call_: sbpjax.models.gpt2.model:GPT2, ...}     # a module: called
    model: {_call_: os:system, _arguments_: [...]}          # rejected, before anything is imported
    data: {_call_: my_project.data:Pages}                   # called with allow=("my_project",)

A configuration in Python is a program without restrictions. A ``config.yaml`` comes with a run, from the author of the
run: it is data until its author is trusted. Three rules hold for every name in it:

* the module is below `sbpjax`, or below a package of ``allow``, and no part of the name is one of Python's own
  (``__globals__``);
* its object is a class or function that is *defined* there, not one that is merely reachable from there:
  ``sbpjax.data.save_load:os.system`` is a name below sbpjax, and defined elsewhere;
* of sbpjax, it is a part of a run (`KINDS`, `FUNCTIONS`): modules, optimizers, schedules, data, parts of the trainer.
  ``sbpjax:load`` may unpickle, ``sbpjax.hub:load`` runs a repository and ``vision.from_hub`` sends a token to the
  server that it is given, so none of these is. ``allow=("sbpjax.vision.models.from_hub",)`` allows one module.
"""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from sbpjax.errors import ConfigError

from .files import file_of
from .lazy import CALL, NAMED, import_object

# Packages of sbpjax that hold parts of a run; no other is imported for a name.
PACKAGES = frozenset({"nn", "optim", "models", "vision", "train", "data", "one_embedding"})

# Classes that a file may call are these and those derived from them.
KINDS = frozenset(
    {
        "sbpjax.nn.module:Module",
        "sbpjax.optim.optimizer:Optimizer",
        "sbpjax.optim.lr_scheduler.base:LRScheduler",
        "sbpjax.optim.loss_scaling:Scaler",
        "sbpjax.data.loading.dataset:Dataset",
        "sbpjax.data.loading.sampler:Sampler",
        "sbpjax.data.loading.dataloader:DataLoader",
        "sbpjax.data.loading.global_loader:GlobalLoader",
        "sbpjax.train.trainer:Trainer",
        "sbpjax.train.gradient_guard:GradientGuard",
        "sbpjax.train.hooks.hook:Hook",
        "sbpjax.train.writers:Writer",
        "sbpjax.train.evaluation.metric:Metric",
        "sbpjax.train.evaluation.glue:Metrics",
        "sbpjax.train.data.tokenizer:SpecialTokens",
        "sbpjax.train.data.token_file:TokenFile",
        "sbpjax.train.data.feature_keys:FrequentKeys",
        "sbpjax.vision.transforms.base:Transform",
        "sbpjax.vision.transforms.mixing:_Mixing",
        "sbpjax.vision.transforms.on_device:OnDevice",
        "sbpjax.vision.metrics:AveragePrecision",
        "sbpjax.vision.metrics:MeanIoU",
        "sbpjax.vision.training.schedules:Schedule",
        "sbpjax.vision.training.schedules:ScheduleRunner",
    }
)

# Plain values with names: a model's configuration, `Parallel`, `StepOptions`, `Columns`, …
RECORDS = ("sbpjax.models.", "sbpjax.vision.", "sbpjax.train.")

# Functions that a file may call or hand on: those of a module, or one of them. Of "sbpjax" itself are the ops alone.
FUNCTIONS = frozenset(
    {
        "sbpjax",
        "sbpjax.nn.functional",
        "sbpjax.nn.init",
        "sbpjax.optim.lr_scheduler.lambdas:warmup_constant",
        "sbpjax.optim.lr_scheduler.lambdas:warmup_cosine",
        "sbpjax.vision.ops.losses",
        "sbpjax.one_embedding.options",
        "sbpjax.models.pretrained:from_pretrained",
        "sbpjax.vision.models.registry:create_model",
        "sbpjax.data.loading.collate:default_collate",
        "sbpjax.train.trainer:parameter_groups",
        "sbpjax.train.data.criteo:read_criteo",
        "sbpjax.train.data.generated_clicks:generated_clicks",
        "sbpjax.train.data.tokenizer:read_tokenizer",
        "sbpjax.train.evaluation.glue:glue_metrics",
        "sbpjax.train.writers:console_writer",
    }
)

FUNCTIONAL = "sbpjax._core.functions.layers."  # the modules that define functions of `sbpjax.nn.functional`

MOST_VALUES = 100_000
BUILTINS = frozenset({"dict", "list", "tuple", "set", "frozenset", "bool", "int", "float", "complex", "str"})
PLAIN_INTERPOLATION = re.compile(r"\$\{[\w.\[\]-]*\}")
RESOLVER = re.compile(r"\$\{([^{}:]*):")
MAKE_TREES = ("oc.create", "oc.decode")  # of texts, with names that no check has seen
PUBLIC = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*", re.ASCII)
NO_DUNDER = re.compile(r"(?!__)[A-Za-z_]\w*(\.(?!__)[A-Za-z_]\w*)*", re.ASCII)


class Allowed:
    """Names that a configuration file may call.

    Args:
        allow: packages and modules, ``"my_project"``, and ``.py`` files, ``"/home/me/config.py"``, whose classes and
            functions may be called, too.
        trust: allow all names.
        operation: the operation, for errors.
        files: let all ``.py`` files be named by their paths.

    Raises:
        ConfigError: ``allow`` is no sequence of texts.
    """

    def __init__(self, allow: Iterable[str] = (), *, trust: bool = False, operation: str = "", files: bool = False):
        self.operation, self.trust, self.files = operation or "reading a configuration", trust, files
        self._values = 0
        self.allow = [allow] if isinstance(allow, str) else list(allow)
        for one in self.allow:
            if not isinstance(one, str) or not one.strip():
                rule = "allow has names of packages and modules, and paths of .py files"
                raise ConfigError(self.operation, f"allow={allow!r}", rule, 'allow=("my_project",)')

    def find(self, path: Any, where: str) -> Any:
        """Return the function or class of a name.

        Args:
            path: the name, ``"package.module:Class"``.
            where: its path in the configuration, for errors.

        Raises:
            ConfigError: the name does not exist, or the file may not call it.
        """
        if not isinstance(path, str) or path.count(":") != 1:
            raise self._rejection_error(path, where)
        if self.trust:
            return import_object(path)
        module, _, name = path.partition(":")
        if module == "builtins" and name in BUILTINS:
            return getattr(builtins, name)
        is_allowed, allow = self._covers(module), module.partition(".")[0]
        if module.endswith(".py"):
            is_allowed, allow = self.files or any(_is_file(module, one) for one in self.allow), module
        is_ours = allow == "sbpjax" and PUBLIC.fullmatch(f"{module}.{name}") and _is_ours(module)
        if not is_ours and not is_allowed:
            raise self._rejection_error(path, where, allow)
        if not NO_DUNDER.fullmatch(name) or not (allow == module or NO_DUNDER.fullmatch(module)):
            raise self._rejection_error(path, where)
        found = import_object(path)
        if not _is_part(found) and not (is_allowed and _is_defined(found, self._covers)):
            raise self._rejection_error(path, where)
        return found

    def count(self, where: str) -> None:
        """Count a created value.

        Raises:
            ConfigError: there are more than a configuration can have, e.g. by interpolations of interpolations.
        """
        self._values += 1
        if self._values > MOST_VALUES:
            rule = f"a configuration has at most {MOST_VALUES:,} values"
            raise ConfigError(self.operation, f"more, at {where[:60]}", rule, "fewer values that stand for others")

    def check(self, tree: Any, where: str) -> None:
        """Check all names of a tree of plain values, dicts and lists.

        Raises:
            ConfigError: a name may not be called, or a text is made by a resolver of OmegaConf.
        """
        if isinstance(tree, dict):
            for key, value in tree.items():
                inner = f"{where}.{key}".strip(".")
                if key in (CALL, NAMED) and not self.trust:
                    self.find(value, where or str(key))
                self.check(value, inner)
        elif isinstance(tree, list):
            for i, one in enumerate(tree):
                self.check(one, f"{where}.{i}".strip("."))
        elif isinstance(tree, str) and not self.trust:
            self._check_text(tree, where)

    def _check_text(self, text: str, where: str) -> None:
        rest = text
        while "${" in rest and rest != (shorter := PLAIN_INTERPOLATION.sub("", rest)):
            rest = shorter
        resolvers = RESOLVER.findall(rest)
        if self.files:  # an override is the user's own: it may read the environment
            resolvers = [one for one in resolvers if one in MAKE_TREES or not OmegaConf.has_resolver(one)]
        if resolvers or ("${" in rest and not self.files):
            rule = "${a.b} refers to another value; none is read from the environment, or computed"
            fix = "write the value there; trust=True (--trust) if the file is your own"
            raise ConfigError(self.operation, f"{where}: {text[:100]!r}", rule, fix)

    def _covers(self, module: str) -> bool:
        """Return whether a module is in an allowed package, or is an allowed file that was run."""
        if file := file_of(module):
            return self.files or any(_is_file(file, one) for one in self.allow)
        return any(module == one or module.startswith(f"{one}.") for one in self.allow)

    def _rejection_error(self, path: Any, where: str, allow: str = "") -> ConfigError:
        rule = (
            "a configuration file calls modules, optimizers, schedules, data and parts of the trainer of sbpjax, and "
        )
        rule += "definitions of packages that you allow"
        fix = "a name of these; trust=True (--trust) calls any, and runs any code of the file's author"
        if allow and allow not in sys.stdlib_module_names and allow != "sbpjax":
            fix = f"allow=({allow!r},) (--allow {allow}), if you trust its code"
        return ConfigError(self.operation, f"{where} calls {path!r}", rule, fix)


def plain_values(tree: DictConfig) -> Any:
    """Return a tree as dicts, lists and values; interpolations as they are written."""
    return OmegaConf.to_container(tree, resolve=False)


def packages_of(tree: Any) -> set[str]:
    """Return the packages, and ``.py`` files, that a tree of plain values calls, without sbpjax and Python's own."""
    if isinstance(tree, list):
        return set().union(*map(packages_of, tree))
    if not isinstance(tree, dict):
        return set()
    found = set().union(*map(packages_of, tree.values()))
    for key in (CALL, NAMED):
        module = str(tree.get(key, "")).partition(":")[0]
        top = module if module.endswith(".py") else module.partition(".")[0]
        found |= {top} if top and top != "sbpjax" and top not in sys.stdlib_module_names else set()
    return found


def _is_defined(found: Any, covers: Callable[[str], bool]) -> bool:
    """Return whether it is a class, or a function that is called without an object, of a covered module."""
    if inspect.ismethod(found):  # a constructor that is a classmethod
        return isinstance(found.__self__, type) and _is_defined(found.__self__, covers)
    if isinstance(found, types.BuiltinFunctionType):  # of an allowed module in C
        return isinstance(found.__self__, types.ModuleType) and covers(found.__module__ or "")
    if not isinstance(found, (type, types.FunctionType)) or not covers(found.__module__):
        return False
    home: Any = sys.modules.get(found.__module__)
    *parents, name = found.__qualname__.split(".")
    for one in parents:
        home = inspect.getattr_static(home, one, None)
    is_method = isinstance(found, types.FunctionType) and isinstance(home, type)
    return not is_method or isinstance(inspect.getattr_static(home, name, None), staticmethod)


def _is_part(found: Any) -> bool:
    """Return whether it is a part of a run that sbpjax defines."""
    if inspect.ismethod(found):
        return _is_part(found.__self__)
    if not _is_defined(found, _is_ours):
        return False
    home, name = found.__module__, f"{found.__module__}:{found.__qualname__}"
    if not isinstance(found, type):
        return home in FUNCTIONS or name in FUNCTIONS or home.startswith(FUNCTIONAL)
    bases = {f"{one.__module__}:{one.__qualname__}" for one in found.__mro__}
    return bool(bases & KINDS) or (dataclasses.is_dataclass(found) and home.startswith(RECORDS))


def _is_ours(module: str) -> bool:
    """Return whether a module is sbpjax, or in one of its packages that have parts of a run."""
    top, *rest = module.split(".")
    return top == "sbpjax" and (not rest or rest[0] in PACKAGES or module.startswith(FUNCTIONAL))


def _is_file(path: str, allowed: str) -> bool:
    """Return whether a file is allowed, or in an allowed folder."""
    if not allowed.endswith(".py") and "/" not in allowed:
        return False
    file, to = Path(path).resolve(), Path(allowed).resolve()
    return file == to or to in file.parents
