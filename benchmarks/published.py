"""Published training throughput against the model of step time and memory (`sbpjax.plan`).

Rows are tables that others measured: MaxText's README of early 2025 (TPU v5p, v5e over several slices), torchtitan's
`benchmarks/llama3_h100_202412_torchtitan.md` (H100), and the sweep of Hugging Face's `bench_cluster` over layouts of a
Llama of 1.1B in nanotron (H100). Sizes and options are those of the files that the tables name. No row is fitted: the
model has the data sheets' peaks and one efficiency per kind of operation and platform.

    python -m benchmarks.published              # the table, with errors
    python -m benchmarks.published --costs      # and the ten largest costs of each row, and memory by part
    python -m benchmarks.published --layouts    # the layouts that the search chooses on each row's machine
    python -m benchmarks.published --pods       # its layouts for 4,096 and 16,384 chips, and its CPU time
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

from sbpjax.auto import PRESETS
from sbpjax.plan import (
    Layout,
    Machine,
    Step,
    Transformer,
    differences,
    explain_costs,
    machine,
    peak,
    search,
    transformer,
)

GIB = 2.0**30


class Row(NamedTuple):
    """A published row.

    Attributes:
        name: of the row.
        step: the model, its layout and machine.
        tokens_per_s: per chip, as published; 0 where MFU is given instead.
        mfu: as published; 0 where tokens per second are.
        memory_bytes: the published peak; 0 if there is none.
        counts_all_pairs: whether its MFU counts attention of all pairs, not of causal ones alone.
        group: rows of one series.
    """

    name: str
    step: Step
    tokens_per_s: float = 0.0
    mfu: float = 0.0
    memory_bytes: float = 0.0
    counts_all_pairs: bool = False
    group: str = ""

    def flops(self) -> float:
        """Return the FLOPs per token that the row's MFU counts."""
        model, length = self.step.model, self.step.length
        return model.flops(length) + model.attention_flops(length) * self.counts_all_pairs

    def peak_flops(self) -> float:
        """Return the FLOP/s of a chip that the row's MFU counts."""
        return self.step.machine.chip.flops_bf16

    def published(self) -> float:
        """Return the published MFU."""
        return self.mfu or self.tokens_per_s * self.flops() / self.peak_flops()

    def predicted(self) -> float:
        """Return the predicted MFU."""
        return self.step.tokens_per_s * self.flops() / self.peak_flops()

    def error(self) -> float:
        """Return the relative error of MFU, which is that of throughput."""
        return self.predicted() / self.published() - 1.0


def maxtext_model(scale: int) -> Transformer:
    """Return MaxText's default decoder at a ``global_parameter_scale`` (base.yml, pyconfig.py)."""
    third, rest = divmod(scale.bit_length() - 1, 3)
    wide, deep = 2 ** (third + (rest > 0)), 2**third
    sizes = {"width": 2048 * 2 ** (third + (rest > 1)), "heads": 16 * wide, "kv_heads": 16 * wide}
    return Transformer(name=f"{scale}B", layers=16 * deep, hidden=7168 * wide, vocab=32000, **sizes)


def _maxtext(model: Transformer, where: str, batch: int, mfu: float, length: int = 2048, **layout) -> Row:
    """Return a row of MaxText: float32 state, gradients in bfloat16, ``batch`` sequences per chip."""
    there = machine(where)
    tensor, slices = layout.get("tensor", 1), there.slices
    fsdp = there.chips // slices // tensor
    made = Layout(**layout, slices=slices, fsdp=fsdp, micro_batch=batch * tensor, reduce_bytes=2)
    step = Step(model, made, there, length, batch * there.chips)
    name = f"MaxText {model.name}, {where}"
    return Row(name, step, mfu=mfu / 100, counts_all_pairs=True, group=f"{model.name} v5e" if "v5e" in where else "")


def maxtext_rows() -> Iterator[Row]:
    """Yield MaxText's rows; v5p-N has N/2 chips."""
    yield _maxtext(maxtext_model(32), "v5p:4x4x4", 7, 71.5, tensor=4, recompute="dots")
    yield _maxtext(maxtext_model(128), "v5p:4x4x8", 1, 68.7, tensor=8, recompute="dots")
    yield _maxtext(maxtext_model(256), "v5p:8x8x8", 1, 68.8, tensor=8, recompute="dots")
    yield _maxtext(maxtext_model(1024), "v5p:8x16x16", 2, 64.8, tensor=16, recompute="full")
    yield _maxtext(transformer("llama2-70b"), "v5p:4x4x4", 4, 65.0, length=4096, recompute="dots_but_up")
    for slices, small, large in ((1, 61.1, 59.9), (4, 59.1, 55.9), (32, 54.7, 50.2)):
        where = f"{slices}*v5e:16x16" if slices > 1 else "v5e:16x16"
        yield _maxtext(maxtext_model(16), where, 6, small, recompute="full")
        yield _maxtext(maxtext_model(64), where, 2, large, recompute="full")


# The H100 of the table: 96 GB of HBM2e at 2.4 TB/s, limited to 500 of 700 W. Power goes with the third power of the
# clock, so products and attention reach (500 / 700)^(1/3) of their speed at 700 W.
_CLOCK = (500 / 700) ** (1 / 3)
_E = PRESETS["h100"].efficiency
H100_500W = dataclasses.replace(
    PRESETS["h100"],
    memory_bytes_per_s=2.4e12,
    memory_bytes=96 * GIB,
    efficiency=dataclasses.replace(
        _E, products=_E.products * _CLOCK, products_f8=_E.products_f8 * _CLOCK, attention=_E.attention * _CLOCK
    ),
)


def _torchtitan(model: str, hosts: int, batch: int, tokens: float, gib: float, **layout) -> Row:
    # PyTorch's loss over a divided vocabulary makes every step of the softmax and its gradient out of place.
    logits = 20.0 if layout.get("tensor", 1) > 1 else 14.0
    made = Layout(fuses_loss=False, logit_bytes=logits, **{"overlaps": False, **layout})
    step = Step(transformer(model), made, Machine(H100_500W, (hosts, 8)), 8192, batch * made.batch_ranks)
    name = f"torchtitan {model}, {8 * hosts} H100"
    return Row(name, step, tokens_per_s=tokens, memory_bytes=gib * GIB)


def torchtitan_rows() -> Iterator[Row]:
    """Yield torchtitan's rows: float32 state, weights gathered in bfloat16, gradients reduced in float32."""
    yield _torchtitan("llama-8b", 1, 2, 6667, 77.0, fsdp=8, micro_batch=2, recompute="half_dots")
    yield _torchtitan("llama-8b", 16, 2, 6514, 62.0, fsdp=128, micro_batch=2, recompute="half_dots")
    full = {"recompute": "full", "precision": "float8", "tensor": 8}
    yield _torchtitan("llama-70b", 32, 16, 829, 71.9, fsdp=32, micro_batch=16, **full)
    # As many micro-batches as stages, which was the default of the time.
    yield _torchtitan("llama-405b", 64, 32, 100, 82.5, fsdp=8, pipeline=8, micro_batch=4, overlaps=True, **full)


def nanotron_rows() -> Iterator[Row]:
    """Yield the sweep over layouts: `bench_cluster` of July 2024, before the fix of nanotron's pipeline.

    Weights in bfloat16, gradients accumulated in float32, ZeRO 1, sequence parallelism that keeps gathered inputs, no
    compiler; a vocabulary of 50,257 that pads to a multiple of the tensor axis alone.
    """
    model = Transformer(
        name="1.1B", layers=24, width=2048, heads=32, kv_heads=32, head_size=64, hidden=4096, vocab=50257, tied=True
    )
    state = {"logit_bytes": 12.0, "weight_bytes": 2, "optimizer_bytes": 12, "zero1": True, "keeps_gathered": True}
    for data, tensor, pipeline, micro, tokens, gb in (
        (4, 2, 1, 8, 33200, 43.7),
        (2, 4, 1, 8, 27700, 25.8),
        (1, 8, 1, 32, 5690, 60.1),
        (1, 2, 8, 8, 4700, 45.8),
    ):
        made = Layout(
            data=data, tensor=tensor, pipeline=pipeline, micro_batch=micro, schedule="serial", fuses=False,
            fuses_loss=False, overlaps=False, **state,
        )  # fmt: skip
        step = Step(model, made, machine(f"h100:{made.chips // 8}x8"), 4096, 1024)
        name = f"nanotron {data}-{tensor}-{pipeline}-{micro}, {made.chips} H100"
        yield Row(name, step, tokens_per_s=tokens, memory_bytes=gb * 1e9, group="sweep")


def rows() -> list[Row]:
    """Return all rows."""
    return [*maxtext_rows(), *torchtitan_rows(), *nanotron_rows()]


def rank_correlation(found: list[Row]) -> float:
    """Return Spearman's rank correlation of predicted and published throughput per chip."""

    def ranks(values: list[float]) -> list[int]:
        order = sorted(values)
        return [order.index(v) for v in values]

    predicted, published = (ranks([getattr(r, m)() for r in found]) for m in ("predicted", "published"))
    n = len(found)
    return 1.0 - 6.0 * sum((a - b) ** 2 for a, b in zip(predicted, published)) / (n * (n * n - 1))


def print_table(found: list[Row]) -> None:
    """Print the rows, and their median and largest errors."""
    head = ("tokens/s a chip: predicted", "published", "MFU: predicted", "published", "error")
    print(f"| row | {' | '.join(head)} | peak: predicted | published | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    for r in found:
        count = r.tokens_per_s or r.mfu * r.peak_flops() / r.flops()
        memory = peak(r.step).total
        known = f"{r.memory_bytes / 1e9:.1f} GB | {memory / r.memory_bytes - 1:+.0%}" if r.memory_bytes else "– | –"
        print(
            f"| {r.name} | {r.step.tokens_per_s:,.0f} | {count:,.0f} | {r.predicted():.1%} | {r.published():.1%} | "
            f"{r.error():+.1%} | {memory / 1e9:.1f} GB | {known} |"
        )
    errors = [abs(r.error()) for r in found]
    print(f"\nMFU: median error {statistics.median(errors):.1%}, largest {max(errors):.1%}, above 25 %: "
          f"{sum(e > 0.25 for e in errors)} of {len(errors)}")  # fmt: skip
    memory = [abs(peak(r.step).total / r.memory_bytes - 1) for r in found if r.memory_bytes]
    print(f"peak memory: median error {statistics.median(memory):.1%}, largest {max(memory):.1%}")
    print(f"rank correlation of the sweep: {rank_correlation([r for r in found if r.group == 'sweep']):.2f}")
    for name in ("16B v5e", "64B v5e"):
        series = [r for r in found if r.group == name]
        predicted, published = (
            100 * (getattr(series[0], m)() - getattr(series[-1], m)()) for m in ("predicted", "published")
        )
        print(f"fall of MFU from 1 to 32 slices, {name}: predicted {predicted:.1f} points, published {published:.1f}")


PODS = (
    ("llama-70b", "h100:512x8", 16), ("llama-405b", "h100:512x8", 16), ("moe-1t", "h100:512x8", 64),
    ("llama-405b", "v5p:16x16x16", 16), ("llama-70b", "h100:2048x8", 64), ("llama-405b", "h100:2048x8", 16),
    ("moe-1t", "h100:2048x8", 64), ("llama-405b", "2*v5p:16x16x32", 64),
)  # fmt: skip


def print_pods() -> None:
    """Print the choices for large machines; batches in millions of tokens, sequences of 8,192."""
    print("\n| model | machine | tokens | layouts | CPU | chosen | step | MFU | memory |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model, where, millions in PODS:
        start = time.process_time()
        found = search(transformer(model), machine(where), 8192, millions * 2**20 // 8192)
        spent, s = time.process_time() - start, found.choice
        print(
            f"| {model} | {where} | {millions}M | {found.candidates + found.too_large:,} | {spent:.0f} s | "
            f"{s.layout.text()} | {s.seconds:.2f} s | {s.mfu:.1%} | {peak(s).total / 1e9:.1f} GB |"
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--costs", action="store_true", help="the ten largest costs of each row, and memory by part")
    parser.add_argument(
        "--layouts", action="store_true", help="the layout that the search chooses on each row's machine"
    )
    parser.add_argument("--pods", action="store_true", help="its layouts for 4,096 and 16,384 chips")
    options = parser.parse_args()
    if options.pods:
        print_pods()
        return
    found = rows()
    print_table(found)
    for r in found if options.costs else ():
        print(f"\n{r.name}: {r.step.seconds:.2f} s a step; {r.step.layout.text()}\n{explain_costs(r.step)}")
    if options.layouts:
        print("\n| row | published layout | predicted | chosen | predicted | why |\n|---|---|---|---|---|---|")
    for r in found if options.layouts else ():
        s = r.step
        # The machine had the memory that the model gives the published layout, since that ran.
        limit = max(s.machine.chip.memory_bytes, peak(s).total)
        policies = sorted({"none", "full", s.layout.recompute})
        best = search(
            s.model, s.machine, s.length, s.sequences, base=s.layout, recompute=policies, limit_bytes=limit
        ).choice
        why = [f"{name} {-seconds:+.2f} s" for seconds, _, name in differences(best, s)[:2]]
        memory = (peak(best).total - peak(s).total) / 1e9
        print(
            f"| {r.name} | {s.layout.text()} | {s.seconds:.2f} s | {best.layout.text()} | {best.seconds:.2f} s | "
            f"{'; '.join(why)}; memory {memory:+.1f} GB |"
        )


if __name__ == "__main__":
    main()
