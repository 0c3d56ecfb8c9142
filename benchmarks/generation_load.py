"""Tokens per second of `sbpjax.serving.GenerationEngine` under load against one request at a time, on one machine.

64 requests of unequal lengths are sent by as many threads as ``--clients`` says, in any order, to an engine over a
small Llama. The same requests are then answered one after the other: by `models.Generator`, the way without an
engine, and by the engine itself. Rounds alternate; medians are compared. All must give the same tokens, and the cache
must take no more memory than its blocks.

    python -m benchmarks.generation_load                  # about a minute
    python -m benchmarks.generation_load --int8 --width 512
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import threading
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jax

import sbpjax as flow
from sbpjax import models, nn
from sbpjax.models.llama import Llama, LlamaConfig
from sbpjax.serving import GenerationEngine

Request = tuple[list[int], int]


def requests(count: int, vocab: int, longest: int) -> list[Request]:
    """Return prompts and numbers of new tokens, all of unequal lengths."""
    rnd = random.Random(0)
    found = []
    for _ in range(count):
        new = rnd.randint(8, longest // 2)
        found.append(([rnd.randrange(vocab) for _ in range(rnd.randint(1, longest - new))], new))
    return found


def loaded(engine: GenerationEngine, requested: list[Request], clients: int) -> tuple[list[list[int]], int]:
    """Return the tokens of all requests, which many clients send, and the most blocks that were in use."""
    found: list[list[int]] = [[] for _ in requested]
    order = random.Random(1).sample(range(len(requested)), len(requested))
    most, ends = 0, threading.Event()

    def ask(places: list[int]) -> None:
        for place in places:
            found[place] = list(engine.submit(*requested[place]))

    def watch() -> None:
        nonlocal most
        while not ends.wait(0.01):
            most = max(most, engine.statistics()["blocks_used"])

    watcher = threading.Thread(target=watch)
    threads = [threading.Thread(target=ask, args=(order[i::clients],)) for i in range(clients)]
    for thread in (watcher, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    ends.set()
    watcher.join()
    return found, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--longest", type=int, default=128)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--int8", action="store_true", help="weights of 8 bits")
    options = parser.parse_args()
    config = LlamaConfig(
        vocab_size=options.vocab,
        hidden_size=options.width,
        intermediate_size=options.width * 8 // 3 // 16 * 16,
        num_hidden_layers=options.layers,
        num_attention_heads=options.width // 32,
        num_key_value_heads=options.width // 64,
        initializer_range=0.2,
    )
    flow.manual_seed(0)
    model = Llama(config).eval()
    if options.int8:
        nn.utils.quantize_weights(model)
    requested = requests(options.requests, options.vocab, options.longest)
    generator = models.Generator(model)
    blocks = options.rows * (options.longest // 16) + 1
    engine = GenerationEngine(model, rows=options.rows, blocks=blocks, longest=options.longest)
    total = sum(new for _, new in requested)
    peak = 0
    rates: dict[str, list[float]] = {}
    by_cpu: dict[str, list[float]] = {}

    def under_load() -> list[list[int]]:
        nonlocal peak
        found, most = loaded(engine, requested, options.clients)
        peak = max(peak, most)
        return found

    ways = {
        "Generator, one at a time": lambda: [generator([prompt], new)[0] for prompt, new in requested],
        "engine, one at a time": lambda: [list(engine.submit(prompt, new)) for prompt, new in requested],
        "engine, under load": under_load,
    }
    with engine:
        wanted = {name: way() for name, way in ways.items()}  # compiles, and warms up
        for name, found in wanted.items():
            assert found == wanted["Generator, one at a time"], f"{name}: other tokens"
        for _ in range(options.rounds):
            for name, way in ways.items():
                before, cpu = time.perf_counter(), time.process_time()
                assert way() == wanted[name]
                rates.setdefault(name, []).append(total / (time.perf_counter() - before))
                by_cpu.setdefault(name, []).append(total / (time.process_time() - cpu))
        results = engine.statistics()
    print(f"jax {jax.__version__}, {os.cpu_count()} cores; {vars(options)}")
    print(f"{options.requests} requests, {total} tokens; all ways give the same ones")
    for name, found in rates.items():
        cpu = statistics.median(by_cpu[name])
        print(f"{name:>26}: {statistics.median(found):,.0f} tokens/s, {cpu:,.0f} tokens per second of CPU")
    for name in list(ways)[:2]:
        wall, cpu = (statistics.median(x["engine, under load"]) / statistics.median(x[name]) for x in (rates, by_cpu))
        print(f"under load / {name}: {wall:.2f} on the clock (target 3.00), {cpu:.2f} in CPU time")
    print(
        f"cache: {results['cache_bytes'] / 2**20:.1f} MiB from the start to the end; at most {peak} of "
        f"{results['blocks']} blocks were in use"
    )


if __name__ == "__main__":
    main()
