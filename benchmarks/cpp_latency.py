"""The time of a call by the C++ library against plain calls of its engine, on the same files, in turns in one process.

    python -m benchmarks.cpp_latency            # builds cpp/ first; needs cmake and a compiler
    python -m benchmarks.cpp_latency --plugin pjrt_c_api_cpu_plugin.so --pjrt-include FOLDER     # XLA too

The engines are OpenVINO, and XLA by a plugin of PJRT.
ResNet-18 at 224 and a multilayer perceptron, one row; OpenVINO with one thread; medians of all calls.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import sbpjax as flow
from sbpjax import nn
from sbpjax.graph import TensorSpec
from sbpjax.vision import create_model

ROOT = Path(__file__).resolve().parents[1]


class Forward(nn.Graph):
    """The forward pass of a model."""

    def __init__(self, model):
        super().__init__()
        self.model = model.eval()

    def build(self, x):
        return self.model(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", help="a folder where cpp/ was built already")
    parser.add_argument("--plugin", help="the library of a plugin of PJRT")
    parser.add_argument("--pjrt-include", help="the folder of pjrt_c_api.h")
    options = parser.parse_args()
    flow.manual_seed(0)
    models = {
        "ResNet-18": (create_model("resnet18"), (1, 3, 224, 224), 200),
        "MLP 784-512-10": (nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)), (1, 784), 20_000),
    }
    with tempfile.TemporaryDirectory() as folder:
        build = Path(options.build or f"{folder}/build")
        if options.build is None:
            from importlib.util import find_spec

            cmake = Path(find_spec("openvino").origin).parent / "cmake"
            command = ["cmake", "-S", str(ROOT / "cpp"), "-B", str(build), f"-DOpenVINO_DIR={cmake}"]
            if options.pjrt_include:
                command.append(f"-DPJRT_INCLUDE={options.pjrt_include}")
            for one in (command, ["cmake", "--build", str(build)]):
                subprocess.run(one, check=True, stdout=subprocess.DEVNULL)
        engines = {"OpenVINO": ("latency",), **({"XLA": ("latency_xla", options.plugin)} if options.plugin else {})}
        print("| model | engine | this library, µs | plain calls, µs | ratio (target 1.05) |\n|---|---|---|---|---|")
        for name, (model, shape, calls) in models.items():
            Forward(model).export(f"{folder}/{name}", TensorSpec(shape), onnx=True)
            for engine, (program, *plugin) in engines.items():
                command = [str(build / program), f"{folder}/{name}", str(calls), *plugin]
                ours, theirs, ratio = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
                print(f"| {name} | {engine} | {ours} | {theirs} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
