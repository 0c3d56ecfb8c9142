"""Training steps of GPTs of 1.3B, 7B and 70B parameters, compiled for machines that are not there.

By the real compilers, on a CPU and without a byte of weights: the model of `examples/gpt/model.py` in bfloat16 with
AdamW, through `nn.Graph` with block scan, on 64 and 512 v5p chips and on 8 H100, with Megatron's layouts over tensor
and ``enable_zero(stage=3)`` over data: matrices rest divided over both, a layer's are gathered in its forward and again
in its backward; vectors are left whole. Needs the extra `aot`.

    JAX_PLATFORMS=cpu python -m benchmarks.absent 7b-64            # or 7b-512, 70b-64, 70b-512, 1.3b-8; --peer, --flat

For each: seconds to build, trace, plan and compile; the memory report beside the compiler's own figures; bytes on the
wire by kind, planned and compiled; `optimal_seconds` of the TPU compiler. ``--peer`` adds the same model written by
hand, with the attention kernel of the machine and the same compiler options (`benchmarks.gpt_by_hand`). The compiler's
cost analysis counts the body of a loop once, so its figure tells something only with ``--flat``: four layers without
loops, on both sides. The compiler prices a custom call, such as the halves of a 64-bit number, at minus one second;
whole seconds are added until the figure is above what the products alone take at the chip's peak.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass, replace

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["SBPJAX_CACHE_DIR"] = "off"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jax

import sbpjax as flow
from benchmarks import gpt_by_hand
from examples.gpt.model import GPT, GPTConfig
from examples.gpt.sharding import TENSOR_PARALLEL
from sbpjax import nn, optim, sbp
from sbpjax._core.compiler import hlo
from sbpjax._core.compiler.options import compiler_options
from sbpjax._core.inspect.display import bytes_text
from sbpjax._core.planner.prices.cost import PRESETS


@dataclass(frozen=True)
class Case:
    """A model on a machine.

    Attributes:
        machine: a topology's name.
        grid: data × tensor.
        layers: number of blocks.
        width: size of a token's vector.
        heads: attention heads.
        context: tokens per sequence.
        batch: sequences per step.
        checkpoint: recompute the blocks in the backward.
        scan: blocks as loops.
        level: 1 gathers a layer's weights in forward and backward, 0 leaves it to the planner.
    """

    machine: str
    grid: tuple[int, int]
    layers: int
    width: int
    heads: int
    context: int
    batch: int
    checkpoint: bool = False
    scan: bool = True
    level: int = 1

    vocab = 32768

    @property
    def kernel(self) -> str:
        """The peer's attention: the kernel that the machine has."""
        return "splash" if self.machine.startswith("v") else "cudnn"


DIVIDED_FROM = 1 << 16  # elements: more than a vector has, fewer than a matrix

CASES = {
    "1.3b-8": Case("h100:8", (4, 2), 24, 2048, 16, 1024, 16),
    "7b-64": Case("v5p:4x4x4", (8, 8), 32, 4096, 32, 2048, 16),
    "7b-512": Case("v5p:8x8x8", (64, 8), 32, 4096, 32, 2048, 128),
    "70b-64": Case("v5p:4x4x4", (8, 8), 80, 8192, 64, 2048, 16, checkpoint=True),
    "70b-512": Case("v5p:8x8x8", (64, 8), 80, 8192, 64, 2048, 128, checkpoint=True),
}


def graph_of(case: Case):
    """Return the graph of a case's training step and its arguments; nothing is traced yet."""
    where = flow.placement.topology(case.machine, case.grid)
    with flow.abstract():
        config = GPTConfig(case.vocab, case.context, case.layers, case.heads, case.width)
        model = GPT(config).to(flow.bfloat16)
    for name, p in model.named_parameters():
        tensor = TENSOR_PARALLEL.get(".".join(name.split(".")[-2:]), sbp.broadcast)
        p.data = p.data.to_global(where, [sbp.broadcast, tensor])
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)
            self.config.enable_block_scan(case.scan)
            self.config.enable_zero(True, stage=3, shard_min_size=DIVIDED_FROM, shard_restore_level=case.level)
            for block in self.model.blocks if case.checkpoint else ():
                block.to(nn.graph.GraphModule).activation_checkpointing = True

        def build(self, tokens, targets):
            loss = self.model.loss(tokens, targets)
            loss.backward()
            return loss

    shape, lies = (case.batch, case.context), [sbp.split(0), sbp.broadcast]
    tokens = flow.zeros(shape, dtype=flow.int64, placement=where, sbp=lies)
    return Train(), (tokens, tokens), sum(p.numel() for p in model.parameters())


def optimal_seconds(compiled, machine: str) -> float | None:
    """Return the compiler's own estimate of a step, None if it gives none; see the top of this file."""
    figures = compiled.cost_analysis()
    if not figures or "optimal_seconds" not in figures:
        return None
    least = figures["flops"] / PRESETS[machine.partition(":")[0]].flops_bf16
    found = figures["optimal_seconds"]
    while found < least:
        found += 1.0
    return found


def estimated_seconds(compiled, case: Case) -> str:
    """Return the compiler's estimate of a step, the bodies of loops counted once; empty where it gives none."""
    found = optimal_seconds(compiled, case.machine)
    return "" if found is None else f"optimal_seconds {found * 1e3:.2f} ms"


def saved(compiled, folder: str | None, name: str) -> None:
    """Write a compiled program's text into a folder, if one is given."""
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{name}.txt"), "w") as file:
            file.write(compiled.as_text())


def figures(compiled) -> str:
    """Return the compiler's figures of a program in one line."""
    m = compiled.memory_analysis()
    names = ("argument", "temp", "output", "alias", "generated_code")
    return ", ".join(f"{n} {bytes_text(getattr(m, f'{n}_size_in_bytes'))}" for n in names)


def run_ours(case: Case, name: str, folder: str | None) -> None:
    began = time.perf_counter()
    graph, arguments, count = graph_of(case)
    print(f"{count / 1e9:.2f}B parameters, built in {time.perf_counter() - began:.1f} s", flush=True)
    graph.build_graph(*arguments)
    program = graph.program
    print(", ".join(f"{phase} {s:.1f} s" for phase, s in program.seconds.items()), flush=True)
    guess = graph.memory(compiled=False)
    print(guess, flush=True)
    cpu = time.process_time()
    found = graph.memory()
    print(f"compile {program.seconds['compile']:.1f} s ({time.process_time() - cpu:.1f} s of CPU time)")
    compiled = program.compile()
    given = compiled.memory_analysis()
    whole = given.argument_size_in_bytes + given.temp_size_in_bytes + given.generated_code_size_in_bytes
    whole += given.output_size_in_bytes - given.alias_size_in_bytes
    print(found)
    print(f"compiler: {figures(compiled)}")
    print(f"report / compiler {found.total / whole:.4f}, estimate / compiler {guess.total / whole:.3f}")
    print(graph.traffic())
    if estimates := estimated_seconds(compiled, case):
        print(estimates, flush=True)
    saved(compiled, folder, name)


def run_peer(case: Case, name: str, folder: str | None) -> None:
    where = flow.placement.topology(case.machine, case.grid)
    began = time.perf_counter()
    with jax.enable_x64(False):
        lowered = gpt_by_hand.lowered(
            where.mesh, layers=case.layers, width=case.width, heads=case.heads, vocab=case.vocab, time=case.context,
            batch=case.batch, dtype=jax.numpy.bfloat16, scan=case.scan, checkpoint=case.checkpoint,
            attention=case.kernel,
        )  # fmt: skip
        traced, cpu = time.perf_counter(), time.process_time()
        compiled = lowered.compile(compiler_options=compiler_options(where, {}))
    took = time.perf_counter() - traced
    print(f"peer: trace {traced - began:.1f} s, compile {took:.1f} s ({time.process_time() - cpu:.1f} s of CPU time)")
    print(f"peer: {figures(compiled)}")
    kinds: dict[str, int] = {}
    for c in hlo.collectives(compiled.as_text()):
        kinds[c.kind] = kinds.get(c.kind, 0) + c.interconnect_bytes
    print(f"peer: {', '.join(f'{k} {bytes_text(n)}' for k, n in kinds.items())}; {bytes_text(sum(kinds.values()))}")
    if estimates := estimated_seconds(compiled, case):
        print(f"peer: {estimates}", flush=True)
    saved(compiled, folder, f"{name}-by-hand")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--peer", action="store_true", help="compile the hand-written model too")
    parser.add_argument("--only-peer", action="store_true", help="and nothing else")
    parser.add_argument("--flat", action="store_true", help="four layers, without loops")
    parser.add_argument("--once", action="store_true", help="let the planner say when weights are gathered")
    parser.add_argument("--layers", type=int, help="other than the case's")
    parser.add_argument("--batch", type=int, help="other than the case's")
    parser.add_argument("--save", metavar="FOLDER", help="write the compiled programs' texts there")
    options = parser.parse_args()
    case = CASES[options.case]
    if options.flat:
        case = replace(case, layers=4, scan=False)
    case = replace(case, layers=options.layers or case.layers, batch=options.batch or case.batch)
    case = replace(case, level=0 if options.once else 1)
    load = os.getloadavg()[0]
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, load {load:.0f}; {options.case}: {case}", flush=True)
    name = options.case + ("-flat" if options.flat else "")
    if not options.only_peer:
        run_ours(case, name, options.save)
    if options.peer or options.only_peer:
        run_peer(case, name, options.save)


if __name__ == "__main__":
    main()
