"""Graphs, live and loaded, on other engines: values, weights that are written, what is refused and how."""

import subprocess
import sys
from importlib import util

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax._core import engines
from sbpjax._core.engines import program
from sbpjax.errors import EngineError, GraphConfigError
from sbpjax.vision.models.vit import ViT, ViTConfig
from tests.models.cases import TRAINED
from tests.support.graphs import Plain, Train

ENGINES = [name for name in ("openvino", "onnxruntime") if util.find_spec(name) is not None]
needs_engines = pytest.mark.skipif(not ENGINES, reason="needs the extra openvino or onnx")
SUMS_IN_OTHER_ORDER = {"rtol": 2e-4, "atol": 2e-5}
SHORT_TYPE = {"rtol": 0.1, "atol": 0.03}


def _vit():
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    return ViT(ViTConfig(image_size=32, patch_size=8, num_labels=5, **size))


def _residual():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
            self.second, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 5)

        def forward(self, x):
            x = nn.functional.max_pool2d(self.norm(self.conv(x)).relu(), 3, 2, 1)
            return self.head((x + self.second(x)).mean((2, 3)))

    return Net()


FAMILIES = {**TRAINED, "vit": _vit, "residual": _residual}
# Rows are gone through in tiles, as many as there are rows.
NEEDS_ROWS = {"mixtral"}


def arguments(name, batch=2):
    if name in ("vit", "residual"):
        return (flow.tensor(np.random.default_rng(1).standard_normal((batch, 3, 32, 32)).astype(np.float32)),)
    tokens = flow.arange(12 * batch).reshape(batch, 12) % 61
    if name.startswith("t5"):
        return tokens, tokens
    present = (tokens < 59).long()
    return (tokens, tokens * 0, present) if name.startswith("bert") else (tokens, present)


def forward(model):
    graph = Plain(lambda g, *args: g.model(*args), model=model.eval())
    graph.config.enable_block_scan(False)
    return graph


def close(found, wanted, **within):
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), **(within or SUMS_IN_OTHER_ORDER))


@needs_engines
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("gpt2", "bert", "residual", "vit") else pytest.mark.exhaustive)
        for name in FAMILIES
    ],
)
def test_every_family_live_and_loaded_with_a_free_batch(name, tmp_path):
    flow.manual_seed(2)
    model = FAMILIES[name]()
    graph = forward(model)
    with flow.no_grad():
        wanted = model.eval()(*arguments(name))
        more = model(*arguments(name, 5))
        for engine in ENGINES:
            getattr(graph.config, f"enable_{engine}")(True)
            close(graph(*arguments(name)), wanted)
        graph.config.engine = None
        free = name not in NEEDS_ROWS
        graph.export(tmp_path / "x", *arguments(name), dynamic_batch=free)
        loaded = flow.load_graph(tmp_path / "x")
        for engine in (*ENGINES, "constant_weights"):
            getattr(loaded, f"enable_{engine}")(True)
            close(loaded(*arguments(name, 5 if free else 2)), more if free else wanted)


def linear():
    flow.manual_seed(0)
    return nn.Linear(4, 2)


@pytest.mark.parametrize("engine", [*ENGINES, "constant_weights"])
def test_a_weight_that_is_written_counts(engine):
    model = linear()
    graph, x = Plain(lambda g, x: g.model(x), model=model), flow.ones(3, 4)
    getattr(graph.config, f"enable_{engine}")(True)
    close(graph(x), model(x))
    with flow.no_grad():
        model.weight.mul_(3.0)
    close(graph(x), model(x))
    getattr(graph.config, f"enable_{engine}")(False)
    assert graph.config.engine is None
    close(graph(x), model(x))


@pytest.mark.parametrize("engine", [*ENGINES, "constant_weights"])
def test_a_loaded_graph_runs_on_arrays(engine, tmp_path):
    model, x = linear(), np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    graph = Plain(lambda g, x, y: (g.model(x), x.sum(1), y), model=model)
    graph.export(tmp_path / "x", flow.ones(2, 4), flow.ones(2, dtype=flow.int64), dynamic_batch=True)
    loaded, y = flow.load_graph(tmp_path / "x"), np.arange(3)
    assert loaded.on_arrays([x, y]) is None
    getattr(loaded, f"enable_{engine}")(True)
    assert loaded.on_arrays([x, y]) is None  # nothing has run
    wanted = loaded(flow.tensor(x), flow.tensor(y))
    found = loaded.on_arrays([x, y])
    assert [out.flags.writeable for out in found] == [True] * 3
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b.numpy())
    for wrong in ([x], [x, y[:2]], [x.astype(np.float64), y], [x[:, :3], y], [x[:0], y[:0]]):
        assert loaded.on_arrays(wrong) is None


@pytest.mark.skipif("openvino" not in ENGINES, reason="needs the extra openvino")
def test_a_short_type_is_near_and_options_are_shown():
    graph, x = Plain(lambda g, x: g.model(x), model=linear()), flow.ones(3, 4)
    wanted = graph(x)
    graph.config.enable_openvino(True, precision="bfloat16", threads=1)
    close(graph(x), wanted, **SHORT_TYPE)
    assert "engine: openvino, bfloat16" in repr(graph.config)


@needs_engines
def test_a_result_that_differs_is_an_error(monkeypatch):
    monkeypatch.setattr(program, "compile_model", lambda *args: lambda arrays: [np.zeros((3, 2), np.float32)])
    graph = Plain(lambda g, x: g.model(x), model=linear())
    getattr(graph.config, f"enable_{ENGINES[0]}")(True)
    with pytest.raises(EngineError, match=r"(?s)seen: output 0 of .* away from XLA's.*rule: .*fix: .*verify=False"):
        graph(flow.ones(3, 4))
    getattr(graph.config, f"enable_{ENGINES[0]}")(True, verify=False)
    assert not graph(flow.ones(3, 4)).numpy().any()


def test_a_missing_engine_says_how_to_get_it(monkeypatch):
    from sbpjax._core.engines import runtimes

    graphs = [Plain(lambda g, x: x + 1) for _ in range(4)]
    x, real = flow.ones(2), runtimes.importlib.import_module

    def gone(name):
        if name.partition(".")[0] in ("openvino", "onnxruntime", "onnx", "iree"):
            raise ImportError(f"No module named {name!r}")
        return real(name)

    monkeypatch.setattr(runtimes.importlib, "import_module", gone)
    for switch, package in (
        ("enable_openvino", "openvino"),
        ("enable_onnxruntime", "onnxruntime"),
        ("enable_tensorrt", "onnxruntime"),
        ("enable_iree", "iree.runtime"),
    ):
        graph = graphs.pop()
        getattr(graph.config, switch)(True)
        expected = rf'(?s){switch}.*no module {package}.*fix:.*pip install .*"{package.partition(".")[0]}.*>='
        with pytest.raises(EngineError, match=expected):
            graph(x)


NEEDS_IREE = pytest.mark.skipif(util.find_spec("iree") is None, reason="needs the extra iree")


@NEEDS_IREE
@pytest.mark.parametrize("name", ["residual", *(pytest.param(n, marks=pytest.mark.exhaustive) for n in FAMILIES)])
def test_iree_takes_the_program_as_it_is(name, tmp_path):
    flow.manual_seed(2)
    graph = forward(FAMILIES[name]())
    with flow.no_grad():
        wanted = graph(*arguments(name))
        graph.export(tmp_path / "x", *arguments(name))
        graph.config.enable_iree(True)
        for _ in range(2):
            close(graph(*arguments(name)), wanted)
        loaded = flow.load_graph(tmp_path / "x").enable_iree(True)
        close(loaded(*arguments(name)), wanted)


@NEEDS_IREE
def test_iree_gets_no_free_size(tmp_path):
    Plain(lambda g, x: g.model(x), model=linear()).export(tmp_path / "x", flow.ones(3, 4), dynamic_batch=True)
    loaded = flow.load_graph(tmp_path / "x").enable_iree(True)
    with pytest.raises(EngineError, match=r"(?s)with a free size.*rule: .*fixed.*fix:.*enable_openvino"):
        loaded(flow.ones(3, 4))


@pytest.mark.skipif("onnxruntime" not in ENGINES, reason="needs the extra onnx")
def test_tensorrt_says_that_it_needs_a_gpu():
    import onnxruntime

    if "TensorrtExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("TensorRT is here")
    graph = Plain(lambda g, x: g.model(x), model=linear())
    graph.config.enable_tensorrt(True, precision="float16")
    with pytest.raises(EngineError, match=r"(?s)without TensorRT.*GPUs.*fix: .*onnxruntime-gpu.*enable_openvino"):
        graph(flow.ones(3, 4))


@pytest.mark.skipif("openvino" not in ENGINES, reason="needs the extra openvino")
def test_weights_of_8_bits_by_openvino():
    graph, x = Plain(lambda g, x: g.model(x), model=_vit()), arguments("vit")[0]
    graph.model.eval()
    wanted = graph(x)
    graph.config.enable_openvino(True, precision="int8")
    if util.find_spec("nncf") is None:
        with pytest.raises(EngineError, match=r'(?s)no module nncf.*fix:.*pip install .*"nncf>='):
            graph(x)
    else:
        close(graph(x), wanted, **SHORT_TYPE)


TWO_GRAPHS = """
import gc, os, signal, time
import sbpjax as flow
from tests.support.graphs import Plain

def run():
    graph = Plain(lambda g, x: g.model(x), model=flow.nn.Linear(4, 3))
    graph.config.enable_openvino(True)
    graph(flow.ones(3, 4))
    return graph

first, second = run(), run()
del first
gc.collect()
del second
gc.collect()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)  # another thread may receive it first
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif("openvino" not in ENGINES, reason="needs the extra openvino")
def test_an_interrupt_after_openvino_graphs_were_freed_is_an_exception():
    found = subprocess.run([sys.executable, "-c", TWO_GRAPHS], capture_output=True, text=True, timeout=300)
    assert (found.returncode, found.stdout) == (0, "interrupted\n"), found.stderr


def _trains():
    model = linear()
    return Train(model, optim.SGD(model.parameters(), lr=0.1))


def _writes():
    return Plain(lambda g, x: g.model(x), model=nn.BatchNorm1d(4))


def _draws():
    return Plain(lambda g, x: g.model(x), model=nn.Dropout(0.5))


@pytest.mark.parametrize(
    "make, seen",
    [(_trains, "tensors of the state"), (_writes, "writes 3 tensors"), (_draws, "draws random numbers")],
)
def test_a_graph_that_does_more_than_compute_is_refused(make, seen):
    graph = make()
    graph.config.enable_constant_weights(True)
    if isinstance(graph, Train):
        graph.loss = lambda model, x: model(x).sum()
    with pytest.raises(EngineError, match=rf"(?s)enable_constant_weights.*seen: .*{seen}.*rule: .*fix: "):
        graph(flow.ones(3, 4))


def test_a_graph_on_several_devices_is_refused():
    place = flow.placement("cpu", [0, 1])
    graph = Plain(lambda g, x: x * 2)
    graph.config.enable_constant_weights(True)
    with pytest.raises(EngineError, match=r"(?s)seen: a graph on .*fix: .*local"):
        graph(flow.ones(4, placement=place, sbp=flow.sbp.split(0)))


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda c: c.enable_openvino(True, precision="int3"), r"precision.*int3.*one of"),
        (lambda c: c.enable_openvino(1), r"enable_openvino\(1\).*a bool"),
        (lambda c: c.enable_onnxruntime(True, threads=0), r"threads.*at least 1"),
        (lambda c: c.enable_openvino(True, verify="yes"), r"verify.*a bool"),
    ],
)
def test_wrong_options(call, expected):
    graph = Plain(lambda g, x: x)
    with pytest.raises(GraphConfigError, match=rf"(?s){expected}"):
        call(graph.config)
    assert graph.config.engine is None


def test_names():
    assert set(engines.PRECISIONS) == set(engines.ENGINES)
