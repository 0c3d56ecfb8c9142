"""A training step of `nn.Graph` against the same model written by hand: ``jax.jit``, ``value_and_grad`` and optax.

One CPU device, one process, steps of both interleaved: CPU time of the whole process (all threads of XLA) and wall
time per step, medians and the median of the ratios of neighbouring steps; FLOPs and temporary memory as the compiler
reports them; trace and compile. The persistent cache is off. Both start from the same numbers, and the losses of all
steps are compared.

    python -m benchmarks.graph_step                     # all models, about three minutes on two cores
    python -m benchmarks.graph_step --models mlp gpt2 --steps 101

`benchmarks/results/performance.md` has figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")
os.environ["SBPJAX_CACHE_DIR"] = "off"

import jax
import jax.numpy as jnp
import numpy as np

import sbpjax as flow
from benchmarks.models import MODELS, data, train_graph
from benchmarks.twins import twin

BATCH = {"mlp": 64, "resnet18": 4, "resnet18-64": 8, "gpt2": 4, "gpt12": 4}
STEPS = {"mlp": 301, "resnet18": 11, "resnet18-64": 11, "gpt2": 31, "gpt12": 15}


class Ours:
    """The graph."""

    def __init__(self, name: str, values: tuple) -> None:
        self.model, _, self.graph = train_graph(flow, name)
        self.values = tuple(map(flow.tensor, values))
        self.tensors = list(self.model.parameters())
        self.seconds: dict = {}

    def compile(self):
        began = time.process_time()
        self.graph.build_graph(*self.values)
        traced = time.process_time()
        compiled = self.graph.program.compile()
        self.seconds = {"trace": traced - began, "compile": time.process_time() - traced}
        return compiled

    def step(self):
        return self.graph(*self.values)._array

    def written(self) -> list:
        return [t._array for t in self.tensors]


class Peer:
    """The step written by hand."""

    def __init__(self, name: str, values: tuple, model) -> None:
        self.run, optimizer = twin(name, MODELS[name][1])
        trained = {n for n, _ in model.named_parameters()}
        state = {n: jnp.array(t.numpy()) for n, t in model.state_dict().items()}
        params = {n: a for n, a in state.items() if n in trained}
        self.state = params, optimizer.init(params), {n: a for n, a in state.items() if n not in trained}
        self.values = tuple(map(jnp.asarray, values))

    def compile(self):
        began = time.process_time()
        lowered = self.run.lower(*self.state, *self.values)
        traced = time.process_time()
        compiled = lowered.compile()
        self.seconds = {"trace": traced - began, "compile": time.process_time() - traced}
        return compiled

    def step(self):
        *self.state, loss = self.run(*self.state, *self.values)
        return loss

    def written(self) -> list:
        return list(self.state[0].values())


def measure(name: str, steps: int, dump: str | None) -> dict:
    """Return the ratios of one model, ours to the peer's."""
    values = data(name, BATCH[name])
    ours = Ours(name, values)
    peer = Peer(name, values, ours.model)
    compiled = [ours.compile(), peer.compile()]
    if dump:
        for kind, c in zip(("ours", "peer"), compiled):
            with open(os.path.join(dump, f"{name}.{kind}.hlo"), "w") as file:
                file.write(c.as_text())
    flops = [c.cost_analysis()["flops"] for c in compiled]
    temporary = [c.memory_analysis().temp_size_in_bytes for c in compiled]
    cpu: tuple = [], []
    wall: tuple = [], []
    losses: tuple = [], []
    for step in range(steps + 3):
        for i, run in enumerate((ours, peer) if step % 2 else (peer, ours)):
            i = 0 if run is ours else 1
            began, worked = time.perf_counter(), time.process_time()
            loss = run.step()
            jax.block_until_ready(loss)
            jax.block_until_ready(run.written())
            if step >= 3:
                cpu[i].append(time.process_time() - worked)
                wall[i].append(time.perf_counter() - began)
            losses[i].append(float(loss))
    ratio = lambda t: statistics.median(a / b for a, b in zip(*t))  # noqa: E731
    found = {
        "cpu": ratio(cpu),
        "wall": ratio(wall),
        "flops": flops[0] / flops[1],
        "temporary": temporary[0] / temporary[1],
    }
    ms = [statistics.median(t) * 1e3 for t in (*cpu, *wall)]
    worst = max(abs(a - b) / losses[1][0] for a, b in zip(*losses))
    times = ", ".join(f"{k} {ours.seconds[k]:.2f} / {peer.seconds[k]:.2f} s" for k in ours.seconds)
    print(f"{name:11} CPU  {ms[0]:8.2f} / {ms[1]:8.2f} ms   ratio {found['cpu']:.3f}  (target 1.02)")
    print(f"{'':11} wall {ms[2]:8.2f} / {ms[3]:8.2f} ms   ratio {found['wall']:.3f}  (target 1.02)")
    print(f"{'':11} FLOPs {flops[0]:.4g} / {flops[1]:.4g}   ratio {found['flops']:.4f}  (target 0.99 to 1.01)")
    print(f"{'':11} temporaries {temporary[0]:,} / {temporary[1]:,} B   ratio {found['temporary']:.3f}  (target 1.05)")
    print(f"{'':11} {times} (CPU); losses differ by {worst:.1e} at most", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--steps", type=int, help="measured steps, instead of those of each model")
    parser.add_argument("--dump", help="a folder for the compiled programs' texts")
    options = parser.parse_args()
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, one CPU device, float32, batches {BATCH}; ours / by hand")
    np.random.seed(0)
    for name in options.models:
        measure(name, options.steps or STEPS[name], options.dump)


if __name__ == "__main__":
    main()
