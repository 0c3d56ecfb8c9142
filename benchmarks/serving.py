"""Inferences per second of Triton with an exported graph, against a model for its Python backend written by hand.

    python -m benchmarks.serving --tritonserver FOLDER --client-python VENV/bin/python

The client is an unmodified ``tritonclient``, which may need an environment of its own (protobuf). Both models are the
same MLP (16, 64, 10) with dynamic batches of up to 16, in one server: 16 threads, one row per request. They are asked
in nine turns whose order alternates. The median counts, since the own threads of the client make a turn half as fast
now and then.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.serving import Repository, Server

CLIENT = """
import importlib, json, sys, threading, time
import numpy as np
kind, url, seconds, clients = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
client = importlib.import_module(f"tritonclient.{kind}")
x = np.random.default_rng(0).standard_normal((1, 16)).astype(np.float32)

def ask(model, until, spans):
    own = client.InferenceServerClient(url)
    given = client.InferInput("x", [1, 16], "FP32")
    given.set_data_from_numpy(x)
    while time.perf_counter() < until:
        start = time.perf_counter()
        own.infer(model, [given])
        spans.append(time.perf_counter() - start)

def run(model, seconds, clients):
    spans, start = [], time.perf_counter()
    threads = [threading.Thread(target=ask, args=(model, start + seconds, spans)) for _ in range(clients)]
    [t.start() for t in threads], [t.join() for t in threads]
    spans.sort()
    return len(spans) / (time.perf_counter() - start), 1e3 * spans[len(spans) // 2], 1e3 * spans[int(len(spans) * 0.99)]

for model in ("graph", "hand"):
    run(model, 1, clients)
rows = {"graph": [], "hand": []}
for turn in range(9):
    for model in list(rows)[:: (-1) ** turn]:
        rows[model].append(run(model, seconds, clients))
one = run("graph", 1, 1)
found = {model: sorted(r)[len(r) // 2] for model, r in rows.items()}
options = {"as_json": True} if kind == "grpc" else {}
stats = client.InferenceServerClient(url).get_inference_statistics("graph", **options)
stats = stats["model_stats"][0]
sizes = [int(b["batch_size"]) for b in stats["batch_stats"]]
print(json.dumps({**found, "one client p50": one[1], "largest batch": max(sizes)}))
"""

BY_HAND = """
import ctypes, sys
sys.path[:0] = {path!r}
import jax, numpy as np
import triton_python_backend_utils as utils
release = ctypes.pythonapi.PyCapsule_SetDestructor
release.argtypes, release.restype = [ctypes.py_object, ctypes.c_void_p], ctypes.c_int


class Capsule:
    def __init__(self, capsule): self.capsule = capsule
    def __dlpack__(self, **_): return self.capsule
    def __dlpack_device__(self): return 1, 0


class TritonPythonModel:
    def initialize(self, args):
        w = np.load({weights!r})
        a, b, c, d = (jax.numpy.asarray(w[k]) for k in ("a", "b", "c", "d"))
        self.f = jax.jit(lambda x: jax.nn.relu(x @ a.T + b) @ c.T + d)
        for n in (1, 2, 4, 8, 16): self.f(np.ones((n, 16), np.float32))

    def execute(self, requests):
        arrays = []
        for request in requests:
            holder = Capsule(utils.get_input_tensor_by_name(request, "x").to_dlpack())
            arrays.append(np.from_dlpack(holder)); release(holder.capsule, None)
        n = sum(len(a) for a in arrays)
        size = next(s for s in (1, 2, 4, 8, 16) if s >= n)
        x = np.concatenate([*arrays, np.zeros((size - n, 16), np.float32)])
        y, at, answers = np.asarray(self.f(x)), 0, []
        for a in arrays:
            part = np.ascontiguousarray(y[at : at + len(a)]).copy(); at += len(a)
            holder = Capsule(part.__dlpack__())
            answers.append(utils.InferenceResponse([utils.Tensor.from_dlpack("output", holder)]))
            release(holder.capsule, None)
        return answers
"""


class Forward(nn.Graph):
    """The forward pass of a model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


class WithByHand(Server):
    """A server with one more model: the one that is written by hand."""

    def _command(self):
        command = super()._command()
        models = Path(self._folder.name) / "models"
        folder = models / "hand"
        shutil.copytree(models / "graph", folder)
        config = (folder / "config.pbtxt").read_text()
        (folder / "config.pbtxt").write_text(config.replace('"graph"', '"hand"'))
        import sysconfig

        text = BY_HAND.format(path=[sysconfig.get_paths()["purelib"]], weights=str(self._repository.path / "w.npz"))
        (folder / "1/model.py").write_text(text)
        return command


def main() -> None:
    """Print one line for each protocol."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tritonserver")
    parser.add_argument("--client-python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10))
        Forward(model).export(Path(folder) / "graph/1/model", flow.ones(2, 16), dynamic_batch=True)
        a, b, c, d = (p.detach().numpy() for p in model.parameters())
        np.savez(Path(folder) / "w.npz", a=a, b=b, c=c, d=d)
        server = WithByHand(
            Repository(folder), binary=options.tritonserver, http_port=18100, grpc_port=18101, metrics_port=18102
        )
        with server:
            for kind, port in (("http", 18100), ("grpc", 18101)):
                command = [options.client_python, "-c", CLIENT, kind, f"127.0.0.1:{port}"]
                done = subprocess.run(
                    [*command, str(options.seconds), str(options.clients)], capture_output=True, text=True
                )
                print(kind, "| (inferences/s, p50 ms, p99 ms):", done.stdout.strip() or done.stderr[-2000:], flush=True)


if __name__ == "__main__":
    main()
