"""Internal state of a graph, apart from the attributes of the user's class."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sbpjax._core.tensor import Tensor
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import Signature
from sbpjax.errors import GraphError, GraphTypeError
from sbpjax.nn.module import Module
from sbpjax.optim.lr_scheduler import LRScheduler
from sbpjax.optim.optimizer import Optimizer

from .module_proxy import GraphModule, ProxyModule
from .program.fast_path import FastPath
from .program.program import Program
from .report_registry import REPORTS
from .schedule_steps import rate_log


class OptimizerEntry(NamedTuple):
    """One optimizer of a graph.

    Attributes:
        optimizer: the optimizer.
        scheduler: the schedule of its learning rates, or None.
        is_sparse: whether rows without gradient are left alone.
    """

    optimizer: Optimizer
    scheduler: LRScheduler | None
    is_sparse: bool


@dataclass(slots=True)
class LastCall:
    """Observations of the last call, for a quick check that the next one has the same signature.

    Attributes:
        mark: `changes.now` after that call.
        fast_path: the fast path of that call, if there is one.
        missed: how often in a row it was tried in vain.
    """

    state: State
    tensors: list
    structure: Any
    static: list
    arguments: list
    config: tuple
    attributes: list
    program: Program
    mark: Any = None
    fast_path: FastPath | None = None
    missed: int = 0


class Internals:
    """Internal state of a graph, apart from the user's attributes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.blocks: OrderedDict[str, Module] = OrderedDict()
        self.proxies: dict[int, ProxyModule] = {}
        self.options: dict[Module, GraphModule] = {}
        self.optimizers: list[OptimizerEntry] = []
        # The steps of the schedulers that advance after every call.
        self.schedules: list[Callable[[], None]] = []
        self.rates = rate_log()
        self.scaler: Any = None
        self.taken: list[Tensor] = []  # tensors outside any module that `build` writes: free running statistics
        self.trained: dict[int, tuple[Tensor, str]] = {}
        self.programs: OrderedDict[Signature, Program] = OrderedDict()
        self.latest: tuple[Signature, Program] | None = None
        self.last: LastCall | None = None
        self.dynamic: Any = None  # a `Dynamic`
        self.debug = REPORTS["debug_output"]()

    def add_optimizer(self, graph: Any, optim: Any, lr_sch: Any, is_sparse: bool) -> None:
        """Check and add an optimizer; see `Graph.add_optimizer`."""
        operation = f"{type(graph).__name__}.add_optimizer"
        if not isinstance(optim, Optimizer):
            raise GraphTypeError(
                operation, f"a {type(optim).__name__}", "optim is an sbpjax.optim.Optimizer", "optim.SGD(params)"
            )
        if lr_sch is not None and not hasattr(lr_sch, "step"):
            made = "LambdaLR(optimizer, factor)" if callable(lr_sch) else "StepLR(optimizer, 10)"
            raise GraphTypeError(
                operation,
                f"lr_sch of type {type(lr_sch).__name__}",
                "lr_sch is a learning-rate schedule",
                f"lr_sch=optim.lr_scheduler.{made}",
            )
        owner = getattr(lr_sch, "optimizer", optim)
        if owner is not optim:
            raise GraphError(
                operation,
                "a schedule of another optimizer",
                "a schedule sets the learning rates of its own",
                f"make it as {type(lr_sch).__name__}(optim, ...)",
            )
        taken = {id(p) for entry in self.optimizers for group in entry.optimizer.param_groups for p in group["params"]}
        if any(id(p) in taken for group in optim.param_groups for p in group["params"]):
            raise GraphError(
                operation,
                "a parameter of an optimizer that was added before",
                "a parameter is updated by one optimizer",
                "give each optimizer parameters of its own",
            )
        if is_sparse:
            optim.use_sparse_updates()
        self.optimizers.append(OptimizerEntry(optim, lr_sch, is_sparse))
        # A schedule that follows a metric needs its value, which only the user has; he steps it himself.
        if lr_sch is not None and getattr(lr_sch, "is_pure", True):
            self.schedules.append(lr_sch.stepped_by(graph) if isinstance(lr_sch, LRScheduler) else lr_sch.step)


def internals_of(graph: Any) -> Internals:
    """Return the internal state of a graph.

    Raises:
        GraphError: the ``__init__`` of `Graph` did not run.
    """
    found = graph.__dict__.get("_g")
    if found is None:
        raise GraphError(
            f"an attribute or a call of {type(graph).__name__}",
            "a graph whose __init__ did not run",
            "a subclass calls super().__init__() before anything else",
            "super().__init__()  # first line of __init__",
        )
    return found
