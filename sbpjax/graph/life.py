"""What a graph keeps for itself, apart from the attributes of the user's class."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sbpjax.errors import GraphError, message
from sbpjax.nn.module import Module
from sbpjax.optim.lr_scheduler import LRScheduler
from sbpjax.optim.optimizer import Optimizer
from sbpjax.tensor import Tensor

from . import report
from .capture import State
from .program import Program
from .proxy import GraphModule, ProxyModule
from .repeat import Repeat
from .signature import Signature


class Entry(NamedTuple):
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
class Last:
    """What the last call found, to see quickly that the next one is of the same signature.

    Attributes:
        mark: `changes.now` behind that call.
        repeat: the quick way to make that call again, if there is one.
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
    repeat: Repeat | None = None
    missed: int = 0


class Life:
    """What a graph keeps for itself, apart from the user's attributes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.blocks: OrderedDict[str, Module] = OrderedDict()
        self.proxies: dict[int, ProxyModule] = {}
        self.options: dict[Module, GraphModule] = {}
        self.optimizers: list[Entry] = []
        self.schedules: list[Callable[[], None]] = []  # the steps of those that go on behind every call
        self.scaler: Any = None
        self.trained: dict[int, tuple[Tensor, str]] = {}
        self.programs: OrderedDict[Signature, Program] = OrderedDict()
        self.latest: tuple[Signature, Program] | None = None
        self.last: Last | None = None
        self.debug = report.Debug()


def life_of(graph: Any) -> Life:
    """Return what a graph keeps for itself.

    Raises:
        GraphError: the ``__init__`` of `Graph` did not run.
    """
    found = graph.__dict__.get("_g")
    if found is None:
        raise GraphError(
            message(
                f"an attribute or a call of {type(graph).__name__}",
                "a graph whose __init__ did not run",
                "a subclass calls super().__init__() before anything else",
                "super().__init__()  # first line of __init__",
            )
        )
    return found
