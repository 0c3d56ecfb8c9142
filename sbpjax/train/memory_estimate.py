"""Estimate of a training step on an absent machine: memory, communication bytes, modelled time, MFU.

    memory per device of TrainStep_0 on sbpjax.placement.topology("v5p:4x4x4", [8, 8]), compiled
    …
    modelled step time 0.412 s, MFU 47 %: 1.2e+17 flop of the model, 64 devices of 4.59e+14 flop/s

Memory and traffic are the compiler's figures. The time is a model by the machine's data sheet: a roofline for
computing, latency and bytes for moving, nothing overlapped (`_core.planner.prices.step_time`). MFU counts the products
of the forward three times, without recomputation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sbpjax.auto import DEFAULT, CostModel, flops, of_placement, plan_us, preset_of
from sbpjax.sbp.placement import placement as Placement

from .step import PredictStep, loss_of

if TYPE_CHECKING:
    from .trainer import Trainer


def report_step_estimate(trainer: Trainer) -> str:
    """Return the report on a trainer's step without running it.

    Args:
        trainer: made under ``with flow.abstract()``, on the placement to estimate.
    """
    arguments, named = trainer.abstract_batch()
    step = trainer.train_step
    step.build_graph(*arguments, **named)
    return f"{step.memory()}\n\n{step.traffic()}\n\n{format_modelled_time(trainer)}"


def format_modelled_time(trainer: Trainer) -> str:
    """Return a text with the modelled time of a built step and its MFU."""
    step_s = modelled_s(trainer)
    if step_s is None:
        return "modelled step time: there is no plan for one device, nor for the stages of a pipeline"
    found = f"modelled step time {step_s:,.3g} s"
    peak = peak_flops(trainer)
    if peak is None:
        return f"{found}; no MFU: the peak of {trainer.parallel.placement.type} is not known"
    count = flops_per_step(trainer)
    devices = trainer.parallel.devices
    mfu = count / (peak * step_s)
    return f"{found}, MFU {mfu:.0%}: {count:.3g} flop of the model, {devices} devices of {peak / devices:.3g} flop/s"


def modelled_s(trainer: Trainer) -> float | None:
    """Return the modelled time of a built step, in seconds; None for one device, and for the stages of a pipeline."""
    plan = trainer.train_step.program.plan
    return None if plan is None else plan_us(plan, of_placement(trainer.parallel.placement)) / 1e6


def peak_flops(trainer: Trainer) -> float | None:
    """Return the flop/s of all devices of a run in its precision, by their data sheets; None if unknown."""
    model = chip_of(trainer.parallel.placement)
    if model is None:
        return None
    half = trainer.options.amp is not None or any(p.element_size() == 2 for p in trainer.model.parameters())
    return trainer.parallel.devices * (model.flops_bf16 if half else model.flops_f32)


def chip_of(where: Placement) -> CostModel | None:
    """Return the prices of a placement's devices; None for a CPU, and for unknown devices."""
    found = preset_of(where)
    return None if found is DEFAULT else found


def flops_per_step(trainer: Trainer) -> float:
    """Return the flop of a step's products: three times those of its forward, without recomputation."""
    arguments, named = trainer.abstract_batch()
    forward = PredictStep(trainer.model, trainer.loss_function or loss_of, trainer.options)
    forward.build_graph(*arguments, **named)
    program = forward.program
    return 3.0 * flops_of(program.flat if program.plan is None else program.plan.program)


def flops_of(program: Any) -> float:
    """Return the flop of all products of a program or jaxpr, of loops as often as they run."""
    total = 0.0
    for eqn in program.eqns:
        inner = [p for v in eqn.params.values() for p in (v if isinstance(v, (list, tuple)) else [v])]
        found = [getattr(p, "jaxpr", p) for p in inner if hasattr(getattr(p, "jaxpr", p), "eqns")]
        times = eqn.params["length"] if eqn.primitive.name == "scan" else 1
        total += flops(eqn) or times * sum(map(flops_of, found))
    return total
