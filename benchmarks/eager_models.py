"""Eager training steps of whole models against PyTorch eager, and what their forwards save for backward.

    python -m benchmarks.eager_models                    # ResNet-18, a 2-layer GPT, Swin-T: four minutes on two cores
    python -m benchmarks.eager_models --graph            # ours as one `nn.Graph`, PyTorch still eager

One CPU device, one process, one text for both (`benchmarks/models.py`), from the same numbers; steps take turns. CPU
time is that of the whole process, all threads. By default the process keeps to one core, for both: where two cores are
two threads of one, a step on both costs more CPU time than on one, and PyTorch's threads spin where cores are not free.
``--cores 2`` gives two to either.

Saved bytes are those of the distinct arrays that the tape of one forward holds, parameters left out: ours by walking
the nodes, PyTorch's by ``saved_tensors_hooks`` (whole storages).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")
os.environ.setdefault("SBPJAX_EVALUATE", "0")  # the steady state, in which NumPy computes no op any longer

import jax
import numpy as np
import torch

import sbpjax as flow
from benchmarks.models import MODELS, data, train_graph

BATCH = {"resnet18-64": 8, "gpt2": 4, "swin_t": 2}
STEPS = {"resnet18-64": 11, "gpt2": 21, "swin_t": 7}
STEP_TARGET, SAVED_TARGET = 1.2, 1.15


class Side:
    """A model in one library, with its optimizer and its batch."""

    def __init__(self, lib, name: str) -> None:
        make, sizes, optimize = MODELS[name]
        self.model = make(lib, **sizes)
        self.optimizer = optimize(lib, self.model)
        self.criterion = lib.nn.CrossEntropyLoss()
        self.x, self.y = map(lib.tensor, data(name, BATCH[name]))

    def forward(self):
        return self.criterion(self.model(self.x), self.y)

    def step(self) -> float:
        """Train once and return the loss; what was computed is there."""
        loss = self.forward()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if isinstance(loss, flow.Tensor):
            jax.block_until_ready([p._array for p in self.model.parameters()])
        return loss.detach().item()


class GraphSide(Side):
    """Ours, with the step compiled as one program."""

    def __init__(self, name: str) -> None:
        self.model, self.optimizer, self.graph = train_graph(flow, name)
        self.criterion = flow.nn.CrossEntropyLoss()
        self.x, self.y = map(flow.tensor, data(name, BATCH[name]))

    def step(self) -> float:
        loss = self.graph(self.x, self.y)
        jax.block_until_ready([p._array for p in self.model.parameters()])
        return loss.item()


def saved_by_us(side: Side) -> int:
    """Return the bytes that the tape of a forward holds beyond the parameters."""
    own = {id(p._array) for p in side.model.parameters()}
    found: dict = {}
    nodes, seen = [side.forward().grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        for array in getattr(node, "saved", None) or ():
            if isinstance(array, jax.Array) and id(array) not in own:
                found[id(array)] = array
        nodes += node.edges
    return sum(array.nbytes for array in found.values())


def saved_by_torch(side: Side) -> int:
    """Return the same of PyTorch's tape."""
    own = {p.untyped_storage().data_ptr() for p in side.model.parameters()}
    found: dict = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = side.forward()
    del loss
    return sum(size for size, _ in found.values())


def measure(name: str, steps: int, graph: bool) -> None:
    """Print the figures of one model, ours and PyTorch's."""
    ours, peer = GraphSide(name) if graph else Side(flow, name), Side(torch, name)
    state = {key: flow.tensor(value.numpy()) for key, value in peer.model.state_dict().items()}
    ours.model.load_state_dict(state)
    saved = saved_by_us(ours), saved_by_torch(peer)
    ours.model.load_state_dict(state)  # the forward moved the statistics of BatchNorm
    peer.model.load_state_dict({key: torch.tensor(value.numpy()) for key, value in state.items()})
    cpu: tuple = [], []
    wall: tuple = [], []
    losses: tuple = [], []
    for step in range(steps + 3):
        for i, side in enumerate((ours, peer)):
            began, worked = time.perf_counter(), time.process_time()
            losses[i].append(side.step())
            if step >= 3:
                cpu[i].append(time.process_time() - worked)
                wall[i].append(time.perf_counter() - began)
    for kind, times in (("CPU", cpu), ("wall", wall)):
        ms = [statistics.median(side) * 1e3 for side in times]
        ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
        target = f"(target {1.0 if graph else STEP_TARGET})" if kind == "CPU" else ""
        print(f"{name:11} {kind:5} {ms[0]:8.1f} / {ms[1]:8.1f} ms   ratio {ratio:.2f}  {target}")
    if not graph:  # a graph keeps nothing on the tape
        mine, theirs = saved[0] / 1e6, saved[1] / 1e6
        print(f"{'':11} saved {mine:8.2f} / {theirs:8.2f} MB   ratio {mine / theirs:.2f}  (target {SAVED_TARGET})")
    worst = max(abs(a - b) / losses[1][0] for a, b in zip(*losses, strict=True))
    print(f"{'':11} losses differ by {worst:.1e} of the first at most", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(BATCH), choices=list(BATCH))
    parser.add_argument("--steps", type=int, help="measured steps, instead of those of each model")
    parser.add_argument("--graph", action="store_true", help="compile our step as one `nn.Graph`")
    parser.add_argument("--cores", type=int, default=1, help="cores of either side, and its threads")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])  # XLA sizes its pool by it, at first use
    torch.set_num_threads(options.cores)
    torch.manual_seed(0)
    np.random.seed(0)
    print(
        f"jax {jax.__version__}, torch {torch.__version__} on {options.cores} of {os.cpu_count()} cores, "
        f"batches {BATCH}; ours / PyTorch"
    )
    for name in options.models:
        measure(name, options.steps or STEPS[name], options.graph)


if __name__ == "__main__":
    main()
