"""Tokens per second of `sbpjax.models.Generator` against `transformers.generate`, with the same weights, in one run.

A Llama of two layers with random weights is written as a Hugging Face folder; both libraries read it and continue the
same 8 prompts greedily on the CPU of one machine (one JAX device; PyTorch with as many threads as there are cores).
Rounds alternate, one of ours, one of theirs; medians of all rounds are compared, on the wall and in CPU time. Both
must give the same tokens.

    python -m benchmarks.generation                  # half a minute; needs transformers and torch
    python -m benchmarks.generation --width 1024 --vocab 32000
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jax
import numpy as np
import torch
import transformers

import sbpjax as flow
from sbpjax import models
from sbpjax.models.llama import Llama, LlamaConfig


def timed(call) -> tuple[list[list[int]], float, float]:
    """Return what a call returns, its seconds on the wall and of CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--beams", type=int, default=1)
    options = parser.parse_args()
    config = LlamaConfig(
        vocab_size=options.vocab,
        hidden_size=options.width,
        intermediate_size=options.width * 8 // 3 // 16 * 16,
        num_hidden_layers=2,
        num_attention_heads=options.heads,
        num_key_value_heads=options.heads // 2,
        initializer_range=0.2,
    )
    flow.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        models.save_pretrained(Llama(config), f"{folder}/llama")
        ours = models.from_pretrained(f"{folder}/llama")
        theirs = transformers.LlamaForCausalLM.from_pretrained(f"{folder}/llama", dtype=torch.float32).eval()
    prompts = np.random.default_rng(0).integers(1, options.vocab, (options.batch, options.prompt))
    generator = models.Generator(ours, beams=options.beams)
    given = torch.tensor(prompts)
    more = {"max_new_tokens": options.tokens, "do_sample": False, "num_beams": options.beams, "eos_token_id": None}

    def run_theirs() -> list[list[int]]:
        with torch.inference_mode():
            results = theirs.generate(given, attention_mask=torch.ones_like(given), pad_token_id=0, **more)
        return results[:, options.prompt :].tolist()

    calls = {"sbpjax": lambda: generator(prompts.tolist(), options.tokens), "transformers": run_theirs}
    results = {name: call() for name, call in calls.items()}  # compiles, and warms up
    walls: dict[str, list[float]] = {name: [] for name in calls}
    cpus: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(options.rounds):
        for name, call in calls.items():
            found, wall, cpu = timed(call)
            assert found == results[name]
            walls[name].append(wall)
            cpus[name].append(cpu)
    equal = np.mean(np.array(results["sbpjax"]) == np.array(results["transformers"]))
    print(f"jax {jax.__version__}, torch {torch.__version__}, transformers {transformers.__version__}")
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads of torch; {vars(options)}")
    print(f"{equal:.1%} of the tokens are equal")
    for name in calls:
        wall, cpu = statistics.median(walls[name]), statistics.median(cpus[name])
        rate = options.batch * options.tokens / wall
        print(f"{name:>12}: {rate:,.0f} tokens/s, {cpu / options.tokens * 1e3:.2f} ms of CPU for each step")
    wall, cpu = (statistics.median(x["transformers"]) / statistics.median(x["sbpjax"]) for x in (walls, cpus))
    print(f"ratios, ours to theirs: {wall:.2f} of tokens/s, {cpu:.2f} of tokens per CPU time (target 1.00)")


if __name__ == "__main__":
    main()
