"""Estimate of a training step on an absent machine: memory, communication bytes, modelled time, MFU.

    memory per device of TrainStep_0 on sbpjax.placement.topology("v5p:4x4x4", [8, 8]), compiled
    …
    modelled step time 0.412 s, MFU 47 %, as by sbpjax.plan: 64 devices of 4.59e+14 flop/s

Memory and traffic are the compiler's figures. Time and MFU of a Llama or Mixtral in 16 bits are those of `sbpjax.plan`,
which counts what programs reach of a chip's peaks, and what runs beside computing. For other models the time is a
roofline of the step's plan at the peaks of the data sheet, with nothing overlapped
(`_core.planner.prices.step_time`): a lower bound of computing, an upper bound of moving. Its MFU counts the products of
the forward three times, without recomputation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sbpjax.auto import DEFAULT, CostModel, flops, of_placement, plan_us, preset_of
from sbpjax.errors import PlacementError
from sbpjax.models.llama import LlamaConfig
from sbpjax.plan import Layout, Step, machine, transformer
from sbpjax.sbp.placement import placement as Placement

from .batches import find_first_tensor
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
    modelled = cluster_step(trainer)
    if modelled is not None:
        devices, peak = modelled.layout.chips, modelled.machine.chip.flops_bf16
        return (
            f"modelled step time {modelled.seconds:,.3g} s, MFU {modelled.mfu:.0%}, as by sbpjax.plan: "
            f"{devices} devices of {peak:.3g} flop/s"
        )
    step_s = modelled_s(trainer)
    if step_s is None:
        return "modelled step time: there is no plan for one device, nor for the stages of a pipeline"
    found = f"modelled step time {step_s:,.3g} s at the data sheet's peaks, nothing overlapped"
    peak = peak_flops(trainer)
    if peak is None:
        return f"{found}; no MFU: the peak of {trainer.parallel.placement.type} is not known"
    count = flops_per_step(trainer)
    devices = trainer.parallel.devices
    mfu = count / (peak * step_s)
    return f"{found}, MFU {mfu:.0%}: {count:.3g} flop of the model, {devices} devices of {peak / devices:.3g} flop/s"


def cluster_step(trainer: Trainer) -> Step | None:
    """Return the step of a Llama or Mixtral as `sbpjax.plan` models it; None for steps that it does not model.

    It models training of all parameters in 16 bits, in whole sequences, on a machine that has a name.
    """
    config, parallel, options = getattr(trainer.model, "config", None), trainer.parallel, trainer.options
    sizes = {p.element_size() for p in trainer.model.parameters()}
    is_half = options.amp is not None or sizes == {2}
    is_whole = all(p.requires_grad for p in trainer.model.parameters())
    if not isinstance(config, LlamaConfig) or not is_half or not is_whole or options.auto or len(sizes) > 1:
        return None
    try:
        where = machine(parallel.device or "")
    except PlacementError:  # devices of this machine, or chips without prices
        return None
    arguments, named = trainer.abstract_batch()
    first = find_first_tensor(named or arguments)
    # ZeRO divides over `data` only what the axis `fsdp` has not divided.
    is_fsdp = options.zero == 3 and parallel.fsdp == 1
    ranks = parallel.data * parallel.fsdp * parallel.expert
    if first.ndim != 2 or parallel.data % where.slices or trainer.batch_size % (ranks * options.accumulate):
        return None
    data = parallel.data // where.slices
    (size,) = sizes
    layout = Layout(
        slices=where.slices,
        data=1 if is_fsdp else data,
        fsdp=data if is_fsdp else parallel.fsdp,
        tensor=parallel.tensor,
        context=parallel.context,
        expert=parallel.expert,
        pipeline=parallel.pipeline,
        micro_batch=trainer.batch_size // (ranks * options.accumulate),
        schedule="gpipe" if options.schedule == "gpipe" else "1f1b",
        recompute="full" if options.checkpointing else "none",
        zero1=options.zero in (1, 2) and data > 1 and parallel.fsdp == 1,
        weight_bytes=size,
        grad_bytes=size,
        optimizer_bytes=2 * size,
        reduce_bytes=size,
    )
    return Step(transformer(config.to_dict()), layout, where, first.shape[1], trainer.batch_size)


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
