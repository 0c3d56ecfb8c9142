"""Tables larger than the devices: the price of the cache, and of a table that grows.

    python -m benchmarks.one_embedding                       # writes benchmarks/results/one_embedding.md
    python -m benchmarks.one_embedding cache                 # one of the parts: cache, rows

*cache*: a table of four times the rows that the device may hold, with ids of which nine in ten are in the cache,
against the same table with all its rows in device memory, by key and as a plain `nn.Embedding`, step by step in turns.
*rows*: the same step on tables of 10⁵ to 10⁷ rows that are all there. Both with the store in memory and in files. Times
are CPU time of the process, with all its threads, in the median over steps.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import sbpjax as flow
from sbpjax import nn, one_embedding, optim

DIM, BATCH, FEATURES = 16, 4096, 26
PLAIN = "`nn.Embedding`, ids are row numbers"
RESULTS = Path(__file__).parent / "results" / "one_embedding.md"


class Click(nn.Module):
    """The tables of 26 features, of which all share one range of keys here, and two layers."""

    def __init__(self, table):
        super().__init__()
        self.table = table
        self.top = nn.Sequential(nn.Linear(FEATURES * DIM, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, ids, labels):
        scores = self.top(self.table(ids).flatten(1)).squeeze(-1)
        return nn.functional.binary_cross_entropy_with_logits(scores, labels)


class Step(nn.Graph):
    """One step of Adam."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.Adam(model.parameters(), lr=1e-3))

    def build(self, ids, labels):
        loss = self.model(ids, labels)
        loss.backward()
        return loss


def step_of(store, name, rows):
    """Return a compiled step on a table whose rows are all made, and the table."""
    flow.manual_seed(0)
    table = one_embedding.MultiTableEmbedding(
        name,
        DIM,
        flow.float32,
        flow.int64,
        [one_embedding.make_table_options(one_embedding.make_uniform_initializer(-0.05, 0.05))],
        store,
    )
    made = table._cache.store
    for start in range(0, rows, 1 << 18):
        keys = np.arange(start, min(rows, start + (1 << 18)))
        made.rows_of(np.zeros(len(keys), np.int64), spread(keys), 0)
    return Step(Click(table)), table


def spread(numbers):
    """Return 64-bit keys for numbers, all over the range."""
    return (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def batch(rng, rows, hot, hot_part):
    """Return numbers of rows of which a part is among the first `hot`, and labels."""
    ids = rng.integers(0, hot, (BATCH, FEATURES))
    rare = rng.random((BATCH, FEATURES)) >= hot_part
    ids[rare] = rng.integers(hot, rows, int(rare.sum())) if rows > hot else ids[rare]
    return ids, flow.tensor(rng.integers(0, 2, BATCH).astype(np.float32))


def cpu_ms(step, ids, labels):
    """Return the CPU time of a step in ms."""
    given = flow.tensor(ids)
    start = time.process_time()
    step(given, labels).numpy()
    return (time.process_time() - start) * 1e3


def plain_step(rows):
    """Return a compiled step on an `nn.Embedding`, whose ids are the numbers of its rows."""
    flow.manual_seed(0)
    model = Click(nn.Embedding(rows, DIM, sparse=True))
    step = Step.__new__(Step)
    nn.Graph.__init__(step)
    step.model = model
    groups = [{"params": model.table.parameters(), "is_sparse": True}, {"params": model.top.parameters()}]
    step.add_optimizer(optim.Adam(groups, lr=1e-3))
    return step


def stores(folder, rows, cache_rows):
    """Return the options of a store whose rows are all on the device, and of those with a cache, by name."""
    budget_mb = cache_rows * DIM * 4 * 3 / 2**20
    return {
        "all in device memory": one_embedding.make_device_mem_store_options(folder, rows),
        "host memory and cache": one_embedding.make_cached_host_mem_store_options(budget_mb, folder, rows, 3),
        "files and cache": one_embedding.make_cached_ssd_store_options(budget_mb, folder, rows, 3),
    }


def cache(device_rows=250_000, steps=40):
    """Compare a table of four times the device's rows with one that lies on the device."""
    rows, rng = 4 * device_rows, np.random.default_rng(0)
    lines = ["| store | rows on the device | hits | CPU ms per step | speed |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        options = stores(folder, rows, device_rows)
        made = {name: step_of(o, f"c{i}", rows) for i, (name, o) in enumerate(options.items())}
        plain = plain_step(rows)
        times = {name: [] for name in (PLAIN, *made)}
        hot = int(0.6 * device_rows)
        for number in range(steps):
            ids, labels = batch(rng, rows, hot, 0.9)
            if number == steps // 4:  # caches are warm, programs compiled
                for _, table in made.values():
                    table._cache.slots.hits = table._cache.slots.misses = 0
            times[PLAIN].append(cpu_ms(plain, ids, labels))
            for name, (step, _) in made.items():
                times[name].append(cpu_ms(step, spread(ids), labels))
        medians = {name: float(np.median(t[steps // 4 :])) for name, t in times.items()}
        lines.append(f"| {PLAIN} | {rows:,} of {rows:,} | | {medians[PLAIN]:.0f} | 1.00 |")
        for name, (_, table) in made.items():
            ratio = medians[PLAIN] / medians[name]
            held = f"{len(table.weight) - 1:,} of {rows:,}"
            lines.append(f"| {name} | {held} | {table.hit_rate:.3f} | {medians[name]:.0f} | {ratio:.2f} |")
    print("\n".join(lines), flush=True)
    return lines


def grown(sizes=(10**5, 10**6, 10**7), cache_rows=200_000, steps=14):
    """Compare steps on tables of more and more rows."""
    lines = ["| store | " + " | ".join(f"{n:,} rows" for n in sizes) + " | largest / smallest |"]
    lines.append("|---" * (len(sizes) + 2) + "|")
    for name in ("host memory and cache", "files and cache"):
        found = []
        for rows in sizes:
            rng = np.random.default_rng(0)
            with tempfile.TemporaryDirectory() as folder:
                step, _ = step_of(stores(folder, rows, cache_rows)[name], "r", rows)
                hot = 60_000
                times = []
                for _ in range(steps):
                    ids, labels = batch(rng, rows, hot, 0.9)
                    times.append(cpu_ms(step, spread(ids), labels))
                found.append(float(np.median(times[steps // 3 :])))
                del step
        row = " | ".join(f"{t:.0f} ms" for t in found)
        lines.append(f"| {name} | {row} | {found[-1] / found[0]:.2f} |")
        print(lines[-1], flush=True)
    return lines


def main():
    """Run the parts and write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", choices=["cache", "rows"])
    part = parser.parse_args().part
    text = [
        "# Tables larger than the devices",
        "",
        f"`python -m benchmarks.one_embedding`: batch {BATCH} × {FEATURES} ids, vectors of {DIM}, Adam, "
        f"{os.cpu_count()} shared cores.",
    ]
    if part in (None, "cache"):
        text += [
            "",
            "A table of four times the rows that the device holds, 90 % of the ids among hot rows:",
            "",
            *cache(),
        ]
    if part in (None, "rows"):
        text += ["", "The same step on larger tables (a cache of 200,000 rows, CPU time):", "", *grown()]
    if part is None:
        RESULTS.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
