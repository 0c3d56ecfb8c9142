"""What building the architectures of the zoo costs, each in a new process with the cache off.

    python benchmarks/build_models.py                          # seventeen
    python benchmarks/build_models.py vit_large_patch16_224

Printed are CPU seconds of the process from after the import, all threads: those of building, and those until every
number was read, since weights are drawn by the first read; and the programs that XLA compiled until then. Medians of
three processes. There is no forward here.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROUNDS = 3
NAMES = """convnext_tiny convnextv2_nano deit_small_patch16_224 efficientnet_b0 efficientnetv2_s iresnet50
    res2net50_26w_4s resnet18 resnet50
    resnext50_32x4d rexnet_100 seresnet50 swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 vit_small_patch16_224
    wide_resnet50_2 vit_base_patch16_224""".split()


def measure(name: str) -> None:
    """Build one architecture in this process; print [CPU seconds, those until read, programs, numbers]."""
    import jax

    programs = 0

    def listen(event: str, duration: float, **_: object) -> None:
        nonlocal programs
        programs += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    from sbpjax.vision.models import create_model

    start = time.process_time()
    model = create_model(name)
    built = time.process_time() - start
    for tensor in model.state_dict().values():
        tensor.numpy()
    read = time.process_time() - start
    print(json.dumps([built, read, programs, sum(p.numel() for p in model.parameters())]))


def main(names: list[str]) -> None:
    """Print a table with a row per architecture."""
    here = pathlib.Path(__file__).resolve()
    env = os.environ | {"SBPJAX_CACHE_DIR": "off", "PYTHONPATH": str(here.parents[1])}
    print("| architecture | parameters | built, CPU s | and read | programs |\n|---|---:|---:|---:|---:|")
    for name in names or NAMES:
        found = []
        for _ in range(ROUNDS):
            command = [sys.executable, str(here), "--measure", name]
            done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
        built, read = (statistics.median(f[i] for f in found) for i in (0, 1))
        print(f"| {name} | {found[0][3] / 1e6:.1f} M | {built:.2f} | {read:.2f} | {found[0][2]} |", flush=True)


if __name__ == "__main__":
    measure(sys.argv[2]) if sys.argv[1:2] == ["--measure"] else main(sys.argv[1:])
