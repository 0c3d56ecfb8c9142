"""Training steps of `nn.Graph` here against OneFlow's own nn.Graph, on the same CPU in one run.

OneFlow 0.9.0 needs Python 3.10 and lives in a virtual environment of its own; this script starts that interpreter on
itself (``--serve``), and the two take turns: one step here, one there, so that a noisy machine disturbs both. Both run
the text of `benchmarks/models.py`, start from the same numbers, and use the same number of threads. A step's time is
measured in the process that makes it, from the call until the loss is a number on the host: wall time, and CPU time of
the whole process.

    python3.10 -m venv of && of/bin/pip install oneflow==0.9.0 "numpy<1.24"
    of/bin/pip install --no-deps nvidia-cudnn-cu11==8.9.6.50 nvidia-cublas-cu11==11.11.3.6
    python -m benchmarks.oneflow_graph --oneflow of/bin/python         # or ONEFLOW_PYTHON=of/bin/python

The CUDA libraries are only needed to load OneFlow; nothing runs on a GPU.
`benchmarks/results/performance.md` has figures.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BATCH = {"mlp": 64, "resnet18": 4, "resnet18-64": 8, "gpt2": 4}
STEPS = {"mlp": 201, "resnet18": 11, "resnet18-64": 11, "gpt2": 21}
TARGET = {"mlp": 3.0, "resnet18": 3.0, "resnet18-64": 3.0, "gpt2": 5.0}


class Runner:
    """One model as a graph of one library, with a step to time."""

    def __init__(self, lib, name: str, weights: str) -> None:
        from benchmarks.models import data, train_graph

        model, _, self.graph = train_graph(lib, name)
        tensors = dict(model.state_dict())
        if os.path.exists(weights):
            found = np.load(weights)
            for key, tensor in tensors.items():
                if key in found:
                    tensor.copy_(lib.tensor(found[key]))
        else:
            np.savez(weights, **{key: tensor.numpy() for key, tensor in tensors.items()})
        self.values = [lib.tensor(v) for v in data(name, BATCH[name])]

    def step(self) -> tuple[float, float, float]:
        """Run a step and return wall seconds, CPU seconds and the loss."""
        began, worked = time.perf_counter(), time.process_time()
        loss = float(self.graph(*self.values).numpy())
        return time.perf_counter() - began, time.process_time() - worked, loss


def serve() -> None:
    """Answer commands on standard input with one line of JSON each; the other output goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import oneflow

    runner = None
    for line in sys.stdin:
        command = json.loads(line)
        if "model" in command:
            runner = Runner(oneflow, command["model"], command["weights"])
            answer: object = oneflow.__version__
        else:
            answer = runner.step()
        out.write(json.dumps(answer) + "\n")
        out.flush()


class Other:
    """OneFlow in a process of its own, stopped while it has nothing to answer: its threads poll for work."""

    def __init__(self, python: str, threads: int) -> None:
        folder = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        libraries = [*glob.glob(f"{folder}/nvidia/*/lib"), f"{folder}/oneflow.libs"]
        count = {k: str(threads) for k in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "ONEFLOW_CPU_THREADS_NUM")}
        path = {"LD_LIBRARY_PATH": ":".join(libraries), "PYTHONPATH": ROOT}
        self._process = subprocess.Popen(
            [python, os.path.abspath(__file__), "--serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **count, **path}, start_new_session=True,
        )  # fmt: skip

    def ask(self, command: dict):
        os.killpg(self._process.pid, signal.SIGCONT)
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("OneFlow's process ended; run it by hand with --serve to see why")
        os.killpg(self._process.pid, signal.SIGSTOP)
        return json.loads(line)

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)
        self._process.stdin.close()
        self._process.wait(30)


def measure(name: str, other: Other, steps: int, folder: str) -> None:
    """Time one model under both and print the ratios."""
    import sbpjax as flow

    weights = os.path.join(folder, f"{name}.npz")
    ours = Runner(flow, name, weights)
    other.ask({"model": name, "weights": weights})
    found: tuple = [], []
    for step in range(steps + 5):
        first = step % 2
        for i in (first, 1 - first):
            found[i].append(ours.step() if i == 0 else other.ask({}))
    wall = [[t[0] for t in side[5:]] for side in found]
    cpu = [[t[1] for t in side[5:]] for side in found]
    early = max(abs(a[2] - b[2]) / found[1][0][2] for a, b in zip(*(side[:5] for side in found)))
    for kind, times in (("wall", wall), ("CPU", cpu)):
        ms = [statistics.median(side) * 1e3 for side in times]
        ratio = statistics.median(b / a for a, b in zip(*times))
        print(
            f"{name:11} {kind:4} sbpjax {ms[0]:8.2f} ms   OneFlow {ms[1]:8.2f} ms   {ratio:6.2f} times as fast  "
            f"(target {TARGET[name]})"
        )
    print(f"{'':11} losses of the first five steps differ by {early:.1e} at most", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--oneflow", default=os.environ.get("ONEFLOW_PYTHON"), help="a Python that has OneFlow")
    parser.add_argument("--models", nargs="+", default=list(BATCH), choices=list(BATCH))
    parser.add_argument("--steps", type=int, help="measured steps, instead of those of each model")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if not options.oneflow:
        parser.error("--oneflow or ONEFLOW_PYTHON names a Python that has OneFlow")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")
    os.environ["NPROC"] = str(options.threads)  # the size of XLA's pool
    import jax

    import sbpjax  # noqa: F401 - before OneFlow's process, so that a mistake here starts none

    other = Other(options.oneflow, options.threads)
    print(f"jax {jax.__version__}, OneFlow 0.9.0, {options.threads} threads, float32, batches {BATCH}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            measure(name, other, options.steps or STEPS[name], folder)
    other.close()


if __name__ == "__main__":
    main()
