"""First training steps of public PyTorch programs, with sbpjax under the name torch, against PyTorch.

    python -m benchmarks.public_programs FOLDER                   # five programs, four processes each
    python -m benchmarks.public_programs FOLDER --programs t5

FOLDER has the programs' texts, as they are published: ``nanogpt/model.py`` and ``mingpt/model.py`` of their
repositories, and of the package index ``x_transformers`` (1.30) with ``einops``, and ``open_clip`` (3.3) with CLIP's
ResNet. T5 is that of `transformers`. Processes of both libraries take turns, with an empty cache, on one core by
default, since PyTorch's threads spin where cores are not free. The figure is the time of the first two steps (forward,
backward, AdamW), wall and CPU; ``step`` is the median of steps 6 to 10.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
import types
from pathlib import Path

BATCH, LENGTH, VOCAB, WIDTH, HEADS, LAYERS = 4, 128, 512, 256, 8, 2
TARGET = 3.0


def load(path: Path, package: str = "program"):
    """Return the module of a file."""
    spec = importlib.util.spec_from_file_location(f"{package}.{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def nanogpt(folder: Path, torch):
    text = load(folder / "nanogpt/model.py")
    model = text.GPT(text.GPTConfig(LENGTH, VOCAB, LAYERS, HEADS, WIDTH, dropout=0.1))
    return model, lambda x: model(x[:, :-1], x[:, 1:].contiguous())[1]


def mingpt(folder: Path, torch):
    text = load(folder / "mingpt/model.py")
    model = text.GPT(text.GPTConfig(VOCAB, LENGTH, n_layer=LAYERS, n_head=HEADS, n_embd=WIDTH))
    return model, lambda x: model(x[:, :-1], x[:, 1:].contiguous())[1]


def x_transformers(folder: Path, torch):
    sys.path.append(str(folder))
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(dim=WIDTH, depth=LAYERS, heads=HEADS)
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=VOCAB, max_seq_len=LENGTH, attn_layers=layers))
    return model, model


def t5(folder: Path, torch):
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=VOCAB, d_model=WIDTH, d_kv=WIDTH // HEADS, d_ff=4 * WIDTH, num_layers=LAYERS, num_heads=HEADS,
        decoder_start_token_id=0,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config)
    return model, lambda x: model(input_ids=x[:, :-1], labels=x[:, 1:].contiguous()).loss


def clip_resnet(folder: Path, torch):
    # Its neighbours need torchvision, and nothing of them runs here.
    package, utils = types.ModuleType("clip"), types.ModuleType("clip.utils")
    package.__path__ = []
    utils.freeze_batch_norm_2d = utils.feature_take_indices = None
    sys.modules |= {"clip": package, "clip.utils": utils}
    text = load(folder / "open_clip/modified_resnet.py", "clip")
    model = text.ModifiedResNet((2, 2, 2, 2), 64, 8, image_size=64, width=16)
    return model, lambda x: model(x).square().mean()


PROGRAMS = {f.__name__: f for f in (nanogpt, mingpt, x_transformers, t5, clip_resnet)}


def work(name: str, folder: Path) -> None:
    """Train ten steps of a program, and print wall and CPU seconds of each."""
    import numpy as np
    import torch

    torch.manual_seed(0)
    model, loss_of = PROGRAMS[name](folder, torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    rng = np.random.default_rng(0)
    if name == "clip_resnet":
        x = torch.tensor(rng.standard_normal((BATCH, 3, 64, 64)).astype(np.float32))
    else:
        x = torch.tensor(rng.integers(1, VOCAB, (BATCH, LENGTH + 1)))
    model.train()
    for _ in range(10):
        wall, cpu = time.perf_counter(), time.process_time()
        loss = loss_of(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        next(model.parameters()).sum().item()
        print(f"step {time.perf_counter() - wall:.4f} {time.process_time() - cpu:.4f}", flush=True)


def run(name: str, folder: Path, ours: bool) -> list[tuple[float, float]]:
    """Return wall and CPU seconds of the steps of a program in a process of its own."""
    command = [sys.executable, *(["-m", "sbpjax.run", "--as", "torch"] if ours else []), __file__]
    env = dict(
        os.environ, SBPJAX_CACHE_DIR="off", SBPJAX_CPU_DEVICES="1", JAX_PLATFORMS="cpu", SBPJAX_COMPILE_NOTE="off"
    )
    done = subprocess.run([*command, str(folder), "--work", name], capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    return [tuple(map(float, line.split()[1:])) for line in done.stdout.splitlines() if line.startswith("step ")]  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the programs' texts")
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=2, help="processes of each library")
    parser.add_argument("--cores", type=int, default=1, help="cores of either side, and its threads")
    parser.add_argument("--work", choices=list(PROGRAMS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.folder.resolve())
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.cores :])
    os.environ["OMP_NUM_THREADS"] = str(options.cores)
    print(f"first two steps on {options.cores} of {os.cpu_count()} cores, sbpjax / PyTorch")
    for name in options.programs:
        found: tuple = [], []
        for _ in range(options.rounds):
            for i in range(2):
                found[i].append(run(name, options.folder.resolve(), not i))
        for kind, place in (("wall", 0), ("CPU", 1)):
            first = [statistics.median(sum(s[place] for s in steps[:2]) for steps in side) for side in found]
            later = [statistics.median(s[place] for steps in side for s in steps[5:]) for side in found]
            print(
                f"{name:15} {kind:5} {first[0]:6.2f} / {first[1]:6.2f} s  "
                f"ratio {first[0] / first[1]:5.2f} (target {TARGET})   "
                f"step {later[0] * 1e3:6.0f} / {later[1] * 1e3:6.0f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
