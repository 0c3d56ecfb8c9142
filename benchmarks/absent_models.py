"""Training steps of Llama-3 8B and 70B, Mixtral 8x7B and GPT-3 175B, compiled for machines that are not there.

By the real compilers, on a CPU and without a byte of weights: the models of `sbpjax.models` in bfloat16 with AdamW,
the `Trainer`'s own step, layouts by `Parallel(...)`, parameters gathered for each use (`zero=3`), blocks as loops and
checkpointed. Needs the extra `aot`; minutes a row on two cores.

    JAX_PLATFORMS=cpu python -m benchmarks.absent_models                # all rows that the file of results lacks
    JAX_PLATFORMS=cpu python -m benchmarks.absent_models llama-8b-64    # some, again
    JAX_PLATFORMS=cpu python -m benchmarks.absent_models --plan         # all rows, without asking the compiler
    python -m benchmarks.absent_models --table                          # the table of all that is known

Each row goes as a line of JSON to ``--out``: seconds, memory, bytes received by kind as planned and as compiled, the
modelled time of a step and its MFU (see `sbpjax.train.memory_estimate`: nothing overlaps, recomputing not counted).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
os.environ["SBPJAX_CACHE_DIR"] = "off"

import jax
import numpy as np

import sbpjax as flow
from sbpjax import models, optim
from sbpjax._core.inspect.traffic import planned_bytes
from sbpjax.errors import OutOfMemoryError
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.models.llama import Llama, LlamaConfig
from sbpjax.models.mixtral import Mixtral, MixtralConfig
from sbpjax.train import StepOptions, Trainer
from sbpjax.train.data import Numbered
from sbpjax.train.memory_estimate import flops_per_step, modelled_s, peak_flops

LLAMA3 = {"vocab_size": 128256, "num_key_value_heads": 8, "rope_theta": 500000.0, "max_position_embeddings": 8192}
NO_DROPOUT = {"embd_pdrop": 0.0, "resid_pdrop": 0.0, "attn_pdrop": 0.0}


def llama_8b() -> Llama:
    """Return Llama-3 8B."""
    sizes = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32}
    return Llama(LlamaConfig(**LLAMA3, **sizes))


def llama_70b() -> Llama:
    """Return Llama-3 70B."""
    sizes = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64}
    return Llama(LlamaConfig(**LLAMA3, **sizes))


def mixtral() -> Mixtral:
    """Return Mixtral 8x7B, with a capacity, which static shapes of experts on other chips want."""
    sizes = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
    return Mixtral(MixtralConfig(vocab_size=32000, **sizes, capacity_factor=1.25))


def gpt3() -> GPT2:
    """Return GPT-3 175B: GPT-2's text of its size."""
    sizes = {"vocab_size": 50257, "n_positions": 2048, "n_embd": 12288, "n_layer": 96, "n_head": 96}
    return GPT2(GPT2Config(**sizes, **NO_DROPOUT))


@dataclass(frozen=True)
class Case:
    """A model on a machine.

    Attributes:
        model: makes it.
        machine: a topology's name.
        axes: of `Parallel`.
        batch: sequences of a step.
        length: tokens of a sequence.
    """

    model: Any
    machine: str
    axes: dict[str, Any] = field(default_factory=dict)
    batch: int = 64
    length: int = 8192


V64, V512, V2048, H8 = "v5p:4x4x4", "v5p:8x8x8", "v5p:8x16x16", "h100:8"
CASES = {
    "llama-8b-h8": Case(llama_8b, H8, {"fsdp": 8}, 8),
    "llama-8b-64": Case(llama_8b, V64, {"fsdp": 16, "tensor": 4}, 64),
    "llama-8b-512": Case(llama_8b, V512, {"fsdp": 128, "tensor": 4}, 256),
    "llama-8b-2048": Case(llama_8b, V2048, {"data": 4, "fsdp": 128, "tensor": 4}, 1024),
    "llama-70b-h8": Case(llama_70b, H8, {"fsdp": 4, "tensor": 2}, 4, 4096),
    "llama-70b-64": Case(llama_70b, V64, {"fsdp": 8, "tensor": 8, "sequence": True}, 32),
    "llama-70b-512": Case(llama_70b, V512, {"fsdp": 64, "tensor": 8, "sequence": True}, 128),
    "llama-70b-2048": Case(llama_70b, V2048, {"data": 4, "fsdp": 64, "tensor": 8, "sequence": True}, 512),
    "mixtral-h8": Case(mixtral, H8, {"expert": 8}, 8, 4096),
    "mixtral-64": Case(mixtral, V64, {"fsdp": 8, "expert": 8}, 64),
    "mixtral-512": Case(mixtral, V512, {"fsdp": 64, "expert": 8}, 512),
    "mixtral-2048": Case(mixtral, V2048, {"fsdp": 64, "expert": 8, "tensor": 4}, 1024),
    "gpt3-64": Case(gpt3, V64, {"fsdp": 8, "tensor": 8, "sequence": True}, 64, 2048),
    "gpt3-512": Case(gpt3, V512, {"fsdp": 64, "tensor": 8, "sequence": True}, 512, 2048),
    "gpt3-2048": Case(gpt3, V2048, {"data": 4, "fsdp": 64, "tensor": 8, "sequence": True}, 1536, 2048),
}


class Sample(Numbered):
    """One sample of a length, for its shape."""

    def __init__(self, length: int):
        super().__init__(1 << 20)
        self.length = length

    def sample(self, number: int):
        zeros = np.zeros(self.length, np.int64)
        return zeros, zeros


def trainer_of(case: Case) -> Trainer:
    """Return the trainer of a case; under ``with flow.abstract()``."""
    return Trainer(
        model=case.model().to(flow.bfloat16),
        optimizer=lambda groups: optim.AdamW(groups, lr=3e-4, weight_decay=0.1),
        data=Sample(case.length),
        max_steps=1,
        batch_size=case.batch,
        parallel=models.Parallel(**case.axes, device=case.machine),
        options=StepOptions(zero=3, checkpointing=True),
        writers=[],
    )


def figures(case: Case, is_compiled: bool = True) -> dict[str, Any]:
    """Return what is known of a case's step; without the compiler what the plan says."""
    began = time.perf_counter()
    with flow.abstract():
        trainer = trainer_of(case)
    found: dict[str, Any] = {"parameters": sum(p.numel() for p in trainer.model.parameters())}
    arguments, named = trainer.abstract_batch()
    step = trainer.train_step
    step.build_graph(*arguments, **named)
    found["plan_s"] = time.perf_counter() - began
    print(f"{found['parameters'] / 1e9:.1f}B parameters, planned in {found['plan_s']:.0f} s", flush=True)
    estimate = step.memory(compiled=False)
    print(estimate, flush=True)
    found["estimate"], found["during"], found["capacity"] = estimate.total, estimate.during, estimate.capacity
    found["planned"] = planned_bytes(step.program.plan, trainer.parallel.placement)
    step_s = modelled_s(trainer)
    found["flops"] = flops_per_step(trainer)
    found["modelled_s"], found["mfu"] = step_s, found["flops"] / (peak_flops(trainer) * step_s)
    print(f"modelled {step_s * 1e3:,.0f} ms, MFU {found['mfu']:.0%}", flush=True)
    if not is_compiled:
        return found
    began, cpu = time.perf_counter(), time.process_time()
    try:
        memory = step.memory()
    except OutOfMemoryError as error:
        found["too_big"] = str(error)
        print(error, flush=True)
        return found
    found["compile_s"], found["compile_cpu_s"] = time.perf_counter() - began, time.process_time() - cpu
    print(memory, flush=True)
    traffic = step.traffic()
    print(traffic, flush=True)
    found["memory"], found["during"] = memory.total, memory.during
    found["planned"], found["compiled"] = traffic.planned, traffic.compiled
    return found


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the figures by case, the latest of each."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {row["case"]: row for row in map(json.loads, lines)}


def table(known: dict[str, dict[str, Any]]) -> str:
    """Return the figures as a table of Markdown."""
    head = (
        "model, machine, layout, batch × tokens", "memory of a device, of it during the step",
        "all-gather, reduce-scatter, all-reduce, all-to-all, permute", "total: planned → compiled",
        "modelled step, MFU", "plan, compile (CPU)",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, case in CASES.items():
        row = known.get(name)
        if row is None:
            continue
        layout = ", ".join(f"{axis}={size}" for axis, size in case.axes.items())
        what = f"{case.model.__doc__.split()[1]} {case.model.__doc__.split()[2].rstrip('.,:')}"
        first = (
            f"{what} ({row['parameters'] / 1e9:.1f}B), `{case.machine}`, `{layout}`, {case.batch:,} × {case.length:,}"
        )
        estimates = f"{row['modelled_s'] * 1e3:,.0f} ms, {row['mfu']:.0%}"
        kinds = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "collective-permute")
        moved = ", ".join(gb(row.get("compiled", row["planned"]).get(kind, 0)) for kind in kinds)
        planned = sum(row["planned"].values())
        if "compiled" in row:
            compiled = sum(row["compiled"].values())
            share = f"{gb(planned)} → {gb(compiled)} GB ({100 * (compiled / planned - 1):+.1f} %)"
            room = f"{gb(row['memory'])} of {gb(row['capacity'])} GB, {gb(row['during'])} GB"
            took = f"{row['plan_s']:.0f} s, {row['compile_s']:.0f} s ({row['compile_cpu_s']:.0f})"
        else:
            share = f"{gb(planned)} GB planned"
            room = f"{gb(row['estimate'])} of {gb(row['capacity'])} GB, {gb(row['during'])} GB estimated"
            took = "does not fit, says the compiler" if "too_big" in row else "not compiled"
        cells = [first, room, f"{moved} GB", share, estimates, took]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def gb(count: float) -> str:
    """Return bytes as GB, with three digits."""
    value = count / 1e9
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 or not value else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--out", type=Path, default=Path("absent_models.jsonl"))
    parser.add_argument("--plan", action="store_true", help="leave the compiler out")
    parser.add_argument("--table", action="store_true", help="print the table of what is known, and stop")
    options = parser.parse_args()
    if unknown := set(options.cases) - set(CASES):
        sys.exit(f"no case {', '.join(sorted(unknown))}: there are {', '.join(CASES)}")
    known = read(options.out)
    if not options.table:
        for name in options.cases or [name for name in CASES if name not in known]:
            print(f"\n{name}: {CASES[name]}", flush=True)
            known[name] = {"case": name, "jax": jax.__version__, **figures(CASES[name], not options.plan)}
            with options.out.open("a") as file:
                file.write(json.dumps(known[name]) + "\n")
    print(table(known))


if __name__ == "__main__":
    main()
