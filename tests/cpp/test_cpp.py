"""The C++ library: built with the compiler at hand, its answers are Python's, from several threads, without a leak."""

import os
import re
import shutil
import subprocess
from importlib import util
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from tests.support.graphs import Plain

ROOT = Path(__file__).resolve().parents[2]
TOOLS = [name for name in ("cmake", "c++") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.skipif(bool(TOOLS), reason=f"needs {' and '.join(TOOLS)}"),
    pytest.mark.skipif(util.find_spec("openvino") is None, reason="needs the extra openvino"),
    pytest.mark.skipif(util.find_spec("onnx") is None, reason="needs the extra onnx"),
    pytest.mark.exhaustive,  # compiles for half a minute
]
EQUAL = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs the example program."""
    from sbpjax.engines.runtimes import module

    cmake = Path(module("openvino", "the tests").__file__).parent / "cmake"
    build = tmp_path_factory.mktemp("build")
    for command in (
        ["cmake", "-S", str(ROOT / "cpp"), "-B", str(build), f"-DOpenVINO_DIR={cmake}"],
        ["cmake", "--build", str(build)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]

    def called(folder, arrays, threads=1, calls=1):
        out, args = folder / "out", []
        for name, array in arrays.items():
            array.tofile(folder / f"{name}.raw")
            args.append(f"{name}={folder / name}.raw:{'x'.join(map(str, array.shape))}")
        command = [str(build / "run"), str(folder / "graph"), str(out), str(threads), str(calls), *args]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=600, env={**os.environ, "SBPJAX_THREADS": "1"}
        )
        return done, out

    return called


def graph(folder, dynamic):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)).eval()
    made = Plain(lambda g, x, scale: (g.model(x) * scale, x.mean((1, 2, 3))), model=model)
    made.export(folder / "graph", flow.ones(2, 3, 8, 8), flow.ones(2, 1), dynamic_batch=dynamic, onnx=True)
    names = [leaf["path"] for leaf in flow.load_graph(folder / "graph").manifest["inputs"]["leaves"]]
    return model, names


@pytest.mark.parametrize("dynamic", [False, True])
def test_answers_are_those_of_python(run, dynamic, tmp_path):
    model, names = graph(tmp_path, dynamic)
    rows = 5 if dynamic else 2
    x = np.random.default_rng(0).standard_normal((rows, 3, 8, 8)).astype(np.float32)
    scale = np.full((rows, 1), 2, np.float32)
    done, out = run(tmp_path, dict(zip(names, (x, scale))))
    assert done.returncode == 0, done.stderr
    found = np.fromfile(f"{out}.0", np.float32).reshape(rows, 5)
    np.testing.assert_allclose(found, 2 * model(flow.tensor(x)).numpy(), **EQUAL)
    np.testing.assert_allclose(np.fromfile(f"{out}.1", np.float32), x.mean((1, 2, 3)), **EQUAL)


def test_four_threads_are_right_and_many_calls_leak_nothing(run, tmp_path):
    _, names = graph(tmp_path, True)
    x, scale = np.ones((1, 3, 8, 8), np.float32), np.ones((1, 1), np.float32)
    done, _ = run(tmp_path, dict(zip(names, (x, scale))), threads=4, calls=25_000)
    assert done.returncode == 0, done.stderr
    wrong, more = re.match(r"(\d+) wrong, .* (-?\d+) KiB more", done.stdout).groups()
    assert int(wrong) == 0 and int(more) < 32 * 1024, done.stdout


def test_errors_are_in_words(run, tmp_path):
    _, names = graph(tmp_path, True)
    x, scale = np.ones((1, 3, 8, 9), np.float32), np.ones((1, 1), np.float32)
    done, _ = run(tmp_path, dict(zip(names, (x, scale))))
    assert done.returncode == 1 and re.search(
        r"is f32\(1, 3, 8, 9\), the graph takes f32\(batch, 3, 8, 8\)", done.stderr
    )
    done, _ = run(tmp_path, {names[0]: x})
    assert "1 inputs were given, the graph takes 2" in done.stderr
    (tmp_path / "graph/model.onnx").unlink()
    done, _ = run(tmp_path, {names[0]: x})
    assert re.search(r"no .*model.onnx: export the graph with .*onnx=True", done.stderr)
