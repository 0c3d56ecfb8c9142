"""`PlannerConfig`: the planner options of a graph: the choices left to the planner, and their prices.

    self.config.enable_auto_parallel(True)
    self.config.enable_auto_memory("AdaptiveMemory", memory_limit_bytes=80e9)

`PlannerConfig.prices` turns them into the options of a program's planner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sbpjax._core.planner.memory.limit import capacity_of
from sbpjax._core.planner.prices.cost import DEFAULT, CostModel, preset
from sbpjax._core.planner.prices.links import of_placement
from sbpjax._core.runtime.signature_errors import explain_arguments
from sbpjax.graph.auto.graph import Auto
from sbpjax.graph.auto.plan_file import Sharding, load
from sbpjax.sbp.hierarchies import Hierarchies
from sbpjax.sbp.placement import placement as Placement

from .config_values import check_bool, check_choice, check_nonnegative, option_error

AUTO_MEMORY = ("Disable", "SlightMemoryDown", "ModerateMemoryDown", "HeavyMemoryDown", "AdaptiveMemory")
AUTO_MEMORY_ALIASES = {
    "SlightAutoMemory": "SlightMemoryDown",
    "ModerateAutoMemory": "ModerateMemoryDown",
    "HeavyAutoMemory": "HeavyMemoryDown",
    "AdaptiveAutoMemory": "AdaptiveMemory",
}
# The weight of a byte of memory against bytes that the ranks move together: OneFlow's numbers.
MEMORY_WEIGHT = {"SlightMemoryDown": 0.4, "ModerateMemoryDown": 4.3, "HeavyMemoryDown": 11.0}
# Of a device's memory: the memory of a plan is known to about 15 %.
_USABLE = 0.85


@explain_arguments
class PlannerConfig:
    """The part of `GraphConfig` that is about auto parallelism and memory.

    Attributes:
        auto_memory: the price of memory in time, see `enable_auto_memory`.
        memory_limit_bytes: the limit of one device, or None.
        auto_parallel: whether the planner lays out the state, see `enable_auto_parallel`.
        auto_placement: the target of a local state then; devices whose grid is to be chosen until the first program.
        auto_ignores_user: whether it gives up the layouts that the user gave.
        auto_trunk: whether latency that other work covers costs nothing.
        auto_collector: whether a conversion for several readers is priced once.
        auto_compute_ratio: the factor on compute time, or None.
        auto_wait_time: the cost of a collective apart from its bytes, or None.
        auto_cost: the prices, or None for those of the devices.
        auto_plan: a plan whose layouts are pinned, or None.
    """

    def __init__(self) -> None:
        self.auto_memory = "Disable"
        self.memory_limit_bytes: float | None = None
        self.auto_parallel = False
        self.auto_placement: Placement | Hierarchies | None = None
        self.auto_ignores_user = False
        self.auto_trunk = True
        self.auto_collector = True
        self.auto_compute_ratio: float | None = None
        self.auto_wait_time: float | None = None
        self.auto_cost: str | CostModel | None = None
        self.auto_plan: Any = None

    def enable_auto_parallel(self, mode: bool = True, *, placement: Placement | Hierarchies | None = None) -> None:
        """Let the planner choose the layouts of parameters, buffers and optimizer state, not only of computed values.

        Tensors that you have split yourself keep their sbp; local and broadcast ones are laid out with the first
        program, and their ``sbp`` shows it from then on. See `sbpjax.auto`.

        Args:
            mode: on or off.
            placement: the devices, for a model that is local so far; None if it is on a placement already. A local
                argument of the graph is then the whole batch, and is laid out in every call. For ``placement.auto(n)``
                the first program is planned on every grid of n devices, and the fastest is kept.
        """
        check_bool("enable_auto_parallel", mode)
        if placement is not None and not isinstance(placement, (Placement, Hierarchies)):
            raise option_error(f"enable_auto_parallel(placement={placement!r})", f"a {type(placement).__name__}",
                         "placement is an sbpjax.placement", 'placement=sbpjax.placement.all("cpu")')  # fmt: skip
        self.auto_parallel, self.auto_placement = mode, placement

    def enable_auto_parallel_ignore_user_sbp_config(self, mode: bool = True) -> None:
        """Choose the layouts of state that you have split too, and drop every ``to_global`` on the same placement.

        Arguments of the graph keep the layouts in which they come.

        Args:
            mode: on or off; without `enable_auto_parallel` it changes nothing.
        """
        self.auto_ignores_user = check_bool("enable_auto_parallel_ignore_user_sbp_config", mode)

    def auto(self) -> Auto | None:
        """Return the options of auto parallelism, None if it is off."""
        return Auto(self.auto_placement, self.auto_ignores_user, self.auto_plan) if self.auto_parallel else None

    def prices(self, placement: Placement | None) -> dict[str, Any]:
        """Return the options of a program by which its planner chooses: ``cost`` and ``memory_bytes``."""
        memory = self.auto_memory != "Disable" or self.memory_limit_bytes is not None
        if placement is None or not (self.auto_parallel or memory):
            return {}
        cost = DEFAULT
        if self.auto_parallel:
            given = self.auto_cost
            cost = of_placement(placement, preset(given) if isinstance(given, str) else given)
            if self.auto_wait_time is not None:
                cost = cost.with_latency(self.auto_wait_time)
            ratio = cost.compute_ratio if self.auto_compute_ratio is None else self.auto_compute_ratio
            cost = replace(cost, compute_ratio=ratio, shares=self.auto_collector, hides=self.auto_trunk)
        weight = MEMORY_WEIGHT.get(self.auto_memory, 0.0)
        if weight:
            ranks = 1 if cost.is_summed else placement.size
            cost = replace(cost, memory_us_per_byte=weight / ranks / cost.interconnect_bytes_per_s * 1e6)
        limit = self.memory_limit_bytes
        if limit is None and self.auto_memory == "AdaptiveMemory":
            capacity = capacity_of(placement)
            limit = None if capacity is None else _USABLE * capacity
        return {"cost": cost, "memory_bytes": limit}

    def enable_auto_parallel_trunk_algo(self, mode: bool = True) -> None:
        """Let latency that other work covers cost nothing; on by default with auto parallelism.

        The reduction of a gradient need not be waited for until the update; an input of the next product is waited for
        at once. Only the wait time is covered: all conversions share one wire. See `_core.planner.prices.slack`.
        """
        self.auto_trunk = check_bool("enable_auto_parallel_trunk_algo", mode)

    def enable_auto_parallel_sbp_collector(self, mode: bool = True) -> None:
        """Price a conversion that several readers want once; on by default with auto parallelism.

        Off, every reader is charged, as by a runtime that does not share copies; the program shares them all the same.
        """
        self.auto_collector = check_bool("enable_auto_parallel_sbp_collector", mode)

    def set_auto_parallel_computation_cost_ratio(self, ratio: float) -> None:
        """Multiply the compute time by a number in auto parallelism.

        Args:
            ratio: 1 by default, 0.05 with the prices ``"oneflow"``; 0 looks at communication alone.
        """
        self.auto_compute_ratio = check_nonnegative("set_auto_parallel_computation_cost_ratio", ratio)

    def set_auto_parallel_wait_time(self, cost: float) -> None:
        """Set the cost of every collective apart from its bytes, in auto parallelism.

        Args:
            cost: in microseconds; that of the prices by default.
        """
        self.auto_wait_time = check_nonnegative("set_auto_parallel_wait_time", cost)

    def set_auto_parallel_plan(self, plan: Any = None) -> None:
        """Follow a plan in auto parallelism: the tensors that it names are laid out so, the planner chooses the rest.

        Args:
            plan: a file that `Graph.auto_parallel_report` saved (``sharding.py`` or JSON), edited or not; the result of
                `sbpjax.auto.load`; or None.

        Raises:
            SbpError: the file is no plan.
        """
        if plan is not None:
            plan = plan if isinstance(plan, Sharding) else load(plan)
        self.auto_plan = plan

    def set_auto_parallel_cost_model(self, model: str | CostModel | None = None) -> None:
        """Choose the prices of auto parallelism.

        Args:
            model: the name of a preset (``"h100"``, ``"v5p"``, ``"oneflow"``…), a `sbpjax.auto.CostModel`, or None for
                the prices that `_core.inspect.auto.calibrate` measured, else the preset of the placement's devices.

        Raises:
            SbpError: there is no such preset.
        """
        if isinstance(model, str):
            preset(model)
        elif model is not None and not isinstance(model, CostModel):
            rule = "prices are the name of a preset or a CostModel"
            fix = 'set_auto_parallel_cost_model("h100")'
            raise option_error("set_auto_parallel_cost_model(...)", f"a {type(model).__name__}", rule, fix)
        self.auto_cost = model

    def enable_auto_memory(self, mode: str = "AdaptiveMemory", *, memory_limit_bytes: float | None = None) -> None:
        """Set the price of a byte of memory in time.

        At a price, a byte that a device holds at the fullest moment of a step (parameters, state, saved activations,
        gathered copies) weighs like 0.4, 4.3 or 11 bytes that the ranks move together.

        Args:
            mode: ``"Disable"`` (memory costs nothing), ``"SlightMemoryDown"``, ``"ModerateMemoryDown"`` (much like data
                parallelism with ZeRO), ``"HeavyMemoryDown"``, or ``"AdaptiveMemory"``: the fastest plan that fits into
                the device, or into ``memory_limit_bytes``, for which equal layers are checkpointed if they must be.
            memory_limit_bytes: the limit of one device in every mode; None for the device's memory under
                ``"AdaptiveMemory"``, and for no limit under the other modes. If no plan fits, the error names the
                smallest limit that one does.
        """
        if memory_limit_bytes is not None:
            operation = "enable_auto_memory(memory_limit_bytes=...)"
            if check_nonnegative(operation, memory_limit_bytes) < 1:
                raise option_error(
                    operation, repr(memory_limit_bytes), "a number of at least 1", "memory_limit_bytes=80e9"
                )
        name = AUTO_MEMORY_ALIASES.get(mode, mode) if isinstance(mode, str) else mode
        mode = check_choice("enable_auto_memory", name, AUTO_MEMORY)
        self.auto_memory, self.memory_limit_bytes = mode, memory_limit_bytes

    def _auto_text(self) -> str:
        if not self.auto_parallel:
            return "off"
        cost = self.auto_cost if isinstance(self.auto_cost, str) else getattr(self.auto_cost, "name", None)
        lines = [
            "the state's placement" if self.auto_placement is None else repr(self.auto_placement),
            "whatever sbp the user gave" if self.auto_ignores_user else "",
            "" if cost is None else f"prices of {cost}",
            "" if self.auto_compute_ratio is None else f"computing × {self.auto_compute_ratio:g}",
            "" if self.auto_wait_time is None else f"{self.auto_wait_time:g} µs per collective",
            "" if self.auto_trunk else "no latency hidden",
            "" if self.auto_collector else "readers priced one by one",
        ]
        return "on " + ", ".join(part for part in lines if part)

    def _memory_text(self) -> str:
        limit = "" if self.memory_limit_bytes is None else f", at most {self.memory_limit_bytes:,.0f} bytes per device"
        return self.auto_memory + limit
