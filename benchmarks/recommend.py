"""Embedding tables with sparse gradients: what a step costs against the size of the tables, and against peers.

    NPROC=32 SBPJAX_CPU_DEVICES=8 python benchmarks/recommend.py

A batch of 4096 examples names one row of each of 26 tables of 16 columns; a linear layer and a logistic loss follow,
then backward and Adam on the named rows. The tables are one weight of 10^5 to 10^7 rows in all. Peers run in the same
process, interleaved; every figure is the median of the process's CPU time, over all threads.

* PyTorch: ``EmbeddingBag(sparse=True)`` of bags of one id, ``SparseAdam`` for it and ``Adam`` for the linear layer, one
  thread, against one device.
* A twin by hand on 8 devices: the same step in plain JAX under ``jax.jit``, its table, state and batch laid out by
  ``NamedSharding``, the collectives left to XLA's partitioner; against the same split of rows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import sbpjax as flow
from sbpjax import nn, optim

BATCH, FEATURES, WIDTH = 4096, 26, 16
RATE, BETAS, EPS = 1e-3, (0.9, 0.999), 1e-8
SIZES = (10**5, 10**6, 10**7)


def batch(rows: int, seed: int = 0):
    """Return ids ``(BATCH, FEATURES)``, each feature in its own part of the rows, and labels."""
    rng = np.random.default_rng(seed)
    part = rows // FEATURES
    ids = rng.integers(0, part, (BATCH, FEATURES)) + part * np.arange(FEATURES)
    return ids, rng.integers(0, 2, BATCH).astype(np.float32)


class Model(nn.Module):
    """A table and a linear layer."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, WIDTH, sparse=True)
        self.head = nn.Linear(FEATURES * WIDTH, 1)

    def forward(self, ids):
        """Return logits ``(BATCH,)`` of ids ``(BATCH, FEATURES)``."""
        return self.head(self.table(ids).flatten(1)).squeeze(-1)


class Train(nn.Graph):
    """A step."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(optim.SparseAdam(model.table.parameters(), RATE))
        self.add_optimizer(optim.Adam(model.head.parameters(), RATE))

    def build(self, ids, labels):
        """Return the loss, and train."""
        loss = nn.functional.binary_cross_entropy_with_logits(self.model(ids), labels)
        loss.backward()
        return loss


def ours(rows: int, layout=None):
    """Return a step of a graph, on one device or with rows or columns divided over eight."""
    model, tensors = Model(rows), [flow.tensor(x) for x in batch(rows)]
    if layout is not None:
        line = flow.placement("cpu", list(range(8)))
        model.table.to_global(line, layout)
        model.head.to_global(line, flow.sbp.broadcast)
        tensors = [t.to_global(line, flow.sbp.split(0)) for t in tensors]
    graph = Train(model)
    return lambda: float(graph(*tensors).item())


def pytorch(rows: int):
    """Return a step of PyTorch."""
    table = torch.nn.EmbeddingBag(rows, WIDTH, mode="sum", sparse=True)
    head = torch.nn.Linear(FEATURES * WIDTH, 1)
    optimizers = torch.optim.SparseAdam(table.parameters(), RATE), torch.optim.Adam(head.parameters(), RATE)
    ids, labels = map(torch.tensor, batch(rows))
    ids = ids.reshape(-1, 1)

    def step() -> float:
        for optimizer in optimizers:
            optimizer.zero_grad()
        logits = head(table(ids).reshape(BATCH, -1)).squeeze(-1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.item()

    return step


def twin(rows: int):
    """Return a step in plain JAX on 8 devices, the rows of the table divided."""
    mesh = Mesh(np.array(jax.devices()[:8]), "x")
    whole, split = (NamedSharding(mesh, PartitionSpec(*spec)) for spec in ((), ("x",)))
    rng = np.random.default_rng(0)
    rows += -rows % 8
    table = rng.standard_normal((rows, WIDTH)).astype(np.float32)
    head = rng.standard_normal((FEATURES * WIDTH,)).astype(np.float32) / 20
    tables = [jax.device_put(x, split) for x in (table, 0 * table, 0 * table)]
    heads = [jax.device_put(x, whole) for x in (head, 0 * head, 0 * head)]
    ids, labels = (jax.device_put(x, split) for x in batch(rows))

    def loss_of(vectors, head, labels):
        logits = vectors.reshape(BATCH, -1) @ head
        return jnp.mean(jnp.maximum(logits, 0) - logits * labels + jnp.log1p(jnp.exp(-jnp.abs(logits))))

    def adam(count, g, p, m, v):
        m, v = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * v + (1 - BETAS[1]) * g * g
        up = m / (1 - BETAS[0] ** count) / (jnp.sqrt(v / (1 - BETAS[1] ** count)) + EPS)
        return p - RATE * up, m, v

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(tables, heads, count, ids, labels):
        vectors = tables[0][ids]
        loss, (g, g_head) = jax.value_and_grad(loss_of, (0, 1))(vectors, heads[0], labels)
        flat, g = ids.reshape(-1), g.reshape(-1, WIDTH)
        order = jnp.argsort(flat)
        flat, g = flat[order], g[order]
        place = jnp.cumsum(jnp.concatenate([jnp.ones(1, bool), flat[1:] != flat[:-1]])) - 1
        sums = jnp.zeros_like(g).at[place].add(g, indices_are_sorted=True)
        named = jnp.full_like(flat, rows).at[place].set(flat)
        new = adam(count, sums, *(t.at[named].get(mode="clip") for t in tables))
        tables = [t.at[named].set(x, mode="drop") for t, x in zip(tables, new)]
        tables = [jax.lax.with_sharding_constraint(t, split) for t in tables]
        return tables, list(adam(count, g_head, *heads)), loss

    state = [tables, heads, jnp.float32(0)]

    def run() -> float:
        state[2] = state[2] + 1
        *state[:2], loss = step(*state, ids, labels)
        return float(loss)

    return run


def interleaved(cases: dict, rounds: int) -> dict[str, float]:
    """Return the median milliseconds of CPU time of a step of each case."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for run in cases.values():
        run(), run()
    for _ in range(rounds):
        for name, run in cases.items():
            start = time.process_time()
            run()
            times[name].append(1e3 * (time.process_time() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Print the tables of `benchmarks/results/recommend.md`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    print("| rows | sbpjax, ms | PyTorch, ms | ratio |\n|---|---|---|---|", flush=True)
    found = {}
    for rows in SIZES:
        found[rows] = interleaved({"ours": ours(rows), "torch": pytorch(rows)}, rounds)
        a, b = found[rows]["ours"], found[rows]["torch"]
        print(f"| {rows:,} | {a:.1f} | {b:.1f} | {a / b:.2f} |", flush=True)
    grown = [found[SIZES[-1]][name] / found[SIZES[0]][name] for name in ("ours", "torch")]
    print(f"| growth | {grown[0]:.2f} × | {grown[1]:.2f} × | |\n")
    print("| rows, 8 devices | by rows, ms | by columns, ms | JAX by hand, by rows, ms | by rows / by hand |")
    print("|---|---|---|---|---|", flush=True)
    for rows in SIZES[:2]:
        split = flow.sbp.split
        cases = {"rows": ours(rows, split(0)), "columns": ours(rows, split(1)), "twin": twin(rows)}
        a, b, c = interleaved(cases, rounds).values()
        print(f"| {rows:,} | {a:.1f} | {b:.1f} | {c:.1f} | {a / c:.2f} |", flush=True)


if __name__ == "__main__":
    main()
