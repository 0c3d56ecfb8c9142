"""The C++ library: built with the compiler at hand, its answers are Python's, from several threads, without a leak.

Over OpenVINO, and over XLA by a plugin of PJRT: that of SBPJAX_PJRT_PLUGIN, or of a wheel that has one for CPUs.
"""

import contextlib
import os
import re
import shutil
import subprocess
from functools import partial
from importlib import util
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, nn
from tests.serving.test_generation import made
from tests.support.graphs import Plain

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = {"lammps_jax_pjrt_cpu": "pjrt_c_api_cpu_plugin.so", "xla_plugins.xla_cpu_pjrt": "xla_cpu_pjrt.so"}
TOOLS = [name for name in ("cmake", "c++") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.skipif(bool(TOOLS), reason=f"needs {' and '.join(TOOLS)}"),
    pytest.mark.skipif(util.find_spec("openvino") is None, reason="needs the extra openvino"),
    pytest.mark.skipif(util.find_spec("onnx") is None, reason="needs the extra onnx"),
    pytest.mark.exhaustive,  # compiles for half a minute
]
EQUAL = {"rtol": 1e-5, "atol": 1e-5}


def folder_of(package):
    """Return where an installed package is; None if it is not."""
    try:
        spec = util.find_spec(package)
    except ModuleNotFoundError:
        return None
    return None if spec is None else Path(spec.submodule_search_locations[0])


def plugin():
    """Return the library of a plugin of PJRT; None if there is none."""
    found = [str(folder / name) for package, name in PLUGINS.items() if (folder := folder_of(package))]
    return os.environ.get("SBPJAX_PJRT_PLUGIN") or next(iter(found), None)


def header():
    """Return the folder of pjrt_c_api.h; None if there is none."""
    package = folder_of("xla_plugins.xla_cpu_pjrt")
    return os.environ.get("PJRT_INCLUDE") or (None if package is None else str(package / "include"))


needs_xla = pytest.mark.skipif(
    plugin() is None or header() is None, reason="needs xla-cpu-pjrt, or SBPJAX_PJRT_PLUGIN and PJRT_INCLUDE"
)
ENGINES = ["openvino", pytest.param("xla", marks=needs_xla)]


def engine_of(name):
    """Return the environment in which the examples run by an engine."""
    return {"SBPJAX_ENGINE": name, **({"SBPJAX_PJRT_PLUGIN": plugin()} if name == "xla" else {})}


def built(folder, *options, target=None):
    """Build the library and its examples, and return the folder."""
    from sbpjax._core.engines.runtimes import module

    cmake = Path(module("openvino", "the tests").__file__).parent / "cmake"
    if header() is not None:
        options = (*options, f"-DPJRT_INCLUDE={header()}")
    for command in (
        ["cmake", "-S", str(ROOT / "cpp"), "-B", str(folder), f"-DOpenVINO_DIR={cmake}", *options],
        ["cmake", "--build", str(folder), *(["--target", target] if target else [])],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return built(tmp_path_factory.mktemp("build"))


def called(build, folder, arrays, threads=1, calls=1, **environment):
    """Run the example `run`, and return how it ended and where its outputs are."""
    out, args = folder / "out", []
    for name, array in arrays.items():
        array.tofile(folder / f"{name}.raw")
        args.append(f"{name}={folder / name}.raw:{'x'.join(map(str, array.shape))}")
    command = [str(build / "run"), str(folder / "graph"), str(out), str(threads), str(calls), *args]
    environment = {**os.environ, "SBPJAX_THREADS": "1", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment), out


@pytest.fixture
def run(build):
    """Return a function that runs the example program."""
    return partial(called, build)


def program(build, name, *args, engine="openvino"):
    """Run another example, and return what it says."""
    command, environment = [str(build / name), *map(str, args)], {**os.environ, **engine_of(engine)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def graph(folder, dynamic):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)).eval()
    made = Plain(lambda g, x, scale: (g.model(x) * scale, x.mean((1, 2, 3))), model=model)
    made.export(folder / "graph", flow.ones(2, 3, 8, 8), flow.ones(2, 1), dynamic_batch=dynamic, onnx=True)
    names = [leaf["path"] for leaf in flow.load_graph(folder / "graph").manifest["inputs"]["leaves"]]
    return model, names


@pytest.mark.parametrize(
    ("engine", "dynamic"), [("openvino", False), ("openvino", True), pytest.param("xla", False, marks=needs_xla)]
)
def test_answers_are_those_of_python(run, engine, dynamic, tmp_path):
    model, names = graph(tmp_path, dynamic)
    rows = 5 if dynamic else 2
    x = np.random.default_rng(0).standard_normal((rows, 3, 8, 8)).astype(np.float32)
    scale = np.full((rows, 1), 2, np.float32)
    done, out = run(tmp_path, dict(zip(names, (x, scale))), **engine_of(engine))
    assert done.returncode == 0, done.stderr
    found = np.fromfile(f"{out}.0", np.float32).reshape(rows, 5)
    np.testing.assert_allclose(found, 2 * model(flow.tensor(x)).numpy(), **EQUAL)
    np.testing.assert_allclose(np.fromfile(f"{out}.1", np.float32), x.mean((1, 2, 3)), **EQUAL)


@pytest.mark.parametrize("engine", ENGINES)
def test_four_threads_are_right_and_many_calls_leak_nothing(run, engine, tmp_path):
    _, names = graph(tmp_path, False)
    x, scale = np.ones((2, 3, 8, 8), np.float32), np.ones((2, 1), np.float32)
    done, _ = run(tmp_path, dict(zip(names, (x, scale))), threads=4, calls=25_000, **engine_of(engine))
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


@needs_xla
def test_errors_of_xla_are_in_words(run, tmp_path):
    _, names = graph(tmp_path, False)
    x, scale = np.ones((2, 3, 8, 9), np.float32), np.ones((2, 1), np.float32)
    engine = engine_of("xla")

    def results(arrays, **environment):
        done, _ = run(tmp_path, arrays, **{**engine, **environment})
        assert done.returncode == 1
        return done.stderr

    assert "is f32(2, 3, 8, 9), the graph takes f32(2, 3, 8, 8)" in results(dict(zip(names, (x, scale))))
    assert "needs the library of a PJRT plugin" in results({}, SBPJAX_PJRT_PLUGIN="")
    assert "cannot load the plugin" in results({}, SBPJAX_PJRT_PLUGIN=str(tmp_path / "none.so"))
    assert "is no plugin of PJRT" in results({}, SBPJAX_PJRT_PLUGIN="libm.so.6")
    assert "neither openvino nor xla" in results({}, SBPJAX_ENGINE="tvm")
    weights, manifest = tmp_path / "graph/weights.safetensors", tmp_path / "graph/manifest.json"
    kept = weights.read_bytes()
    for cut in (0, 4, 100, len(kept) - 1):
        weights.write_bytes(kept[:cut])
        assert re.search(r"cannot load .*graph: .*(cut off|another size|JSON)", results({}))
    weights.write_bytes(kept)
    text = manifest.read_text()
    for wrong in ("", "{", "[" * 100_000, text[: len(text) // 2], "{}"):
        manifest.write_text(wrong)
        assert "cannot load" in results({})
    manifest.write_text(text)
    program = tmp_path / "graph/program.mlirbc"
    program.write_bytes(b"not a program")
    (tmp_path / "graph/program.hlo.pb").unlink()
    assert "XLA: " in results({})
    program.unlink()
    assert "program.mlirbc: export the graph again" in results({})


@needs_xla
@pytest.mark.parametrize(
    ("what", "words"),
    [("free", "without dynamic_batch=True"), ("random", "random numbers"), ("trains", "writes its state")],
)
def test_xla_says_which_graphs_it_does_not_run(run, what, words, tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5), nn.BatchNorm1d(2)).train(what == "trains")
    if what == "trains":
        model[1].p = 0.0
    graph = Plain(lambda g, x: g.model(x) + (flow.rand(2) if what == "random" else 0), model=model)
    expected_warning = (
        pytest.warns(UserWarning, match="training mode") if what == "trains" else contextlib.nullcontext()
    )
    with flow.no_grad(), expected_warning:
        graph.export(tmp_path / "graph", flow.ones(4, 3), dynamic_batch=what == "free")
    done, _ = run(tmp_path, {}, **engine_of("xla"))
    assert done.returncode == 1 and words in done.stderr


@needs_xla
def test_xla_reads_an_export_for_several_platforms_and_other_types(run, tmp_path):
    held = flow.arange(6).reshape(2, 3)
    graph = Plain(lambda g, x, on: (x.long() + held, flow.where(on, x, -x).bfloat16(), on.logical_not()))
    arguments = flow.ones(2, 3), flow.ones(2, 1).bool()
    with flow.no_grad():
        graph.export(tmp_path / "graph", *arguments, platforms=["cuda", "cpu", "tpu"])
    names = [leaf["path"] for leaf in flow.load_graph(tmp_path / "graph").manifest["inputs"]["leaves"]]
    x, on = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32), np.array([[True], [False]])
    done, out = run(tmp_path, dict(zip(names, (x, on))), **engine_of("xla"))
    assert done.returncode == 0, done.stderr
    assert (
        np.fromfile(f"{out}.0", np.int64).tolist() == (x.astype(np.int64) + np.arange(6).reshape(2, 3)).ravel().tolist()
    )
    wanted = flow.tensor(np.where(on, x, -x)).bfloat16().float().numpy().ravel().tolist()
    found = (np.fromfile(f"{out}.1", np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert found.tolist() == wanted
    assert np.fromfile(f"{out}.2", np.bool_).tolist() == [False, True]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_image_is_classified(build, engine, tmp_path):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, 4), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 7)).eval()
    Plain(lambda g, x: g.model(x), model=model).export(tmp_path / "g", flow.ones(1, 3, 32, 32), onnx=True)
    # Of one colour all over, so that scaling changes nothing.
    (tmp_path / "i.ppm").write_bytes(b"P6 50 40 255\n" + bytes([200, 100, 50]) * 2000)
    (tmp_path / "labels.txt").write_text("".join(f"class {i}\n" for i in range(7)))
    colour = (np.array([200, 100, 50]) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    x = np.broadcast_to(colour[:, None, None], (1, 3, 32, 32)).astype(np.float32)
    odds = model(flow.tensor(x)).softmax(-1).numpy()[0]
    results = [
        line.split(" ", 2)
        for line in program(
            build, "classify", tmp_path / "g", tmp_path / "i.ppm", tmp_path / "labels.txt", engine=engine
        ).splitlines()
    ]
    assert [int(k) for k, _, _ in results] == np.argsort(-odds)[:5].tolist()
    np.testing.assert_allclose([float(p) for _, p, _ in results], np.sort(odds)[:-6:-1], rtol=1e-3, atol=1e-5)
    assert results[0][2] == f"class {results[0][0]}"
    (tmp_path / "i.ppm").write_bytes(b"P6 99999999 99999999 255\n")
    done = subprocess.run([build / "classify", tmp_path / "g", tmp_path / "i.ppm"], capture_output=True, text=True)
    assert done.returncode == 1 and "no binary PPM" in done.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_tokens_are_those_of_generate(build, engine, tmp_path):
    model = made("gpt2")
    wanted = models.Generator(model)([[5, 6, 7]], 8)[0]
    with flow.no_grad():
        graph = Plain(lambda g, x: g.model(x), model=model)
        graph.export(tmp_path / "g", flow.zeros(1, 16, dtype=flow.int64), onnx=True)
    assert list(map(int, program(build, "generate", tmp_path / "g", 8, 5, 6, 7, engine=engine).split())) == wanted


def test_the_c_interface_with_pkg_config(build, tmp_path):
    model = nn.Linear(3, 2)
    Plain(lambda g, x: g.model(x), model=model).export(tmp_path / "g", flow.ones(1, 3), dynamic_batch=True, onnx=True)
    wanted = model(flow.ones(1, 3)).numpy()[0]
    np.testing.assert_allclose(np.array(program(build, "from_c", tmp_path / "g").split(), float), wanted, **EQUAL)
    done = subprocess.run([build / "from_c", tmp_path / "none"], capture_output=True, text=True)
    assert done.returncode == 1 and "no " in done.stderr and "model.onnx" in done.stderr
    if shutil.which("pkg-config") is None:
        pytest.skip("needs pkg-config for the rest")
    subprocess.run(["cmake", "--install", build, "--prefix", tmp_path / "there"], check=True, capture_output=True)
    (pc,) = (tmp_path / "there").rglob("sbpjax.pc")
    text = pc.read_text().splitlines()
    pc.write_text("\n".join([f"prefix={tmp_path / 'there'}", *text[1:]]))
    found = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "sbpjax"], check=True, capture_output=True, text=True, env=found
    )
    source = ROOT / "cpp/examples/from_c.c"
    command = ["cc", str(source), "-o", str(tmp_path / "from_c"), *flags.stdout.split()]
    subprocess.run(command, check=True, capture_output=True)
    np.testing.assert_allclose(np.array(program(tmp_path, "from_c", tmp_path / "g").split(), float), wanted, **EQUAL)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing(sanitizer, engine, tmp_path):
    _, names = graph(tmp_path, False)
    build = built(tmp_path / "build", f"-DSANITIZE={sanitizer}", "-DCMAKE_BUILD_TYPE=Debug", target="run")
    # The engines are built without sanitizers: what they do among themselves is not looked at.
    others = ["libopenvino", "libtbb", "pjrt"]
    (tmp_path / "known").write_text("".join(f"race:{name}\n" for name in others))
    options = {
        "ASAN_OPTIONS": "detect_leaks=1:alloc_dealloc_mismatch=0",
        "LSAN_OPTIONS": f"suppressions={tmp_path / 'leaks'}",
        "TSAN_OPTIONS": f"suppressions={tmp_path / 'known'}:ignore_noninstrumented_modules=1",
        "UBSAN_OPTIONS": "halt_on_error=1",
        "TBB_ENABLE_SANITIZERS": "1",  # TBB else loads a library in a way that they refuse
        **engine_of(engine),
    }
    (tmp_path / "leaks").write_text("".join(f"leak:{name}\n" for name in others))
    arrays = dict(zip(names, (np.ones((2, 3, 8, 8), np.float32), np.ones((2, 1), np.float32))))
    done, _ = called(build, tmp_path, arrays, threads=4, calls=50, **options)
    assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr[-3000:]
    done, _ = called(build, tmp_path, dict(list(arrays.items())[:1]), **options)
    assert done.returncode == 1 and "Sanitizer" not in done.stderr, done.stderr[-3000:]
