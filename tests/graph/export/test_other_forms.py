"""The files beside an exported program: what they are, and that others read them."""

import hashlib
import json
from importlib import util

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import EngineError, ExportError
from tests.support.graphs import Plain

SUMS_IN_OTHER_ORDER = {"rtol": 1e-5, "atol": 1e-6}


def wide():
    """Return a graph with weights that are large enough to lie outside of a model."""
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5))
    return Plain(lambda g, x: g.model(x), model=model)


def test_all_forms_have_their_digest(tmp_path):
    wide().export(tmp_path / "x", flow.ones(2, 20))
    manifest = json.loads((tmp_path / "x/manifest.json").read_text())
    assert set(manifest["other_forms"]) == {"program.mlir", "program.mlirbc", "program.hlo.pb"}
    for name, digest in manifest["other_forms"].items():
        assert hashlib.sha256((tmp_path / "x" / name).read_bytes()).hexdigest() == digest
    assert "stablehlo.dot_general" in (tmp_path / "x/program.mlir").read_text()
    # A seed that nothing draws from is no input of the program.
    assert manifest["program"]["kept"] == [1, 2, 3, 4, 5]


def test_the_artifact_is_read_by_stablehlo_and_gives_the_same_program(tmp_path):
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import stablehlo

    wide().export(tmp_path / "x", flow.ones(2, 20))
    context = ir.Context()
    stablehlo.register_dialect(context)
    module = stablehlo.deserialize_portable_artifact(context, (tmp_path / "x/program.mlirbc").read_bytes())
    assert str(module).count("dot_general") == 2


def test_a_free_size_has_no_hlo(tmp_path):
    wide().export(tmp_path / "x", flow.ones(2, 20), dynamic_batch=True)
    assert not (tmp_path / "x/program.hlo.pb").exists() and (tmp_path / "x/program.mlir").exists()


@pytest.mark.parametrize("name", ["openvino", "onnxruntime"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_model_reads_its_weights_from_the_weights_file(name, dynamic, tmp_path):
    if util.find_spec(name) is None or util.find_spec("onnx") is None:
        pytest.skip(f"needs {name} and onnx")
    from sbpjax._core.engines import runtimes

    graph = wide()
    graph.export(tmp_path / "x", flow.ones(2, 20), dynamic_batch=dynamic, onnx=True)
    path = tmp_path / "x/model.onnx"
    assert path.stat().st_size < 2000 < 30 * 20 * 4
    x = flow.arange(20.0 * (6 if dynamic else 2)).reshape(-1, 20) / 20
    engine = runtimes.module(name, "test")
    if name == "openvino":
        ready = engine.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        found = ready({"x": x.numpy()} if "x" in str(ready.inputs) else [x.numpy()])[0]
    else:
        session = engine.InferenceSession(path)
        found = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    np.testing.assert_allclose(found, graph.model.to(nn.Module)(x).numpy(), **SUMS_IN_OTHER_ORDER)


@pytest.mark.skipif(util.find_spec("onnx") is None, reason="needs onnx")
def test_what_cannot_be_a_model_leaves_nothing_behind(tmp_path):
    layers = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)) for _ in range(4)])

    def build(g, x):
        for layer in g.layers:
            x = layer(x)
        return x

    graph = Plain(build, layers=layers)
    graph.config.enable_block_scan(True)
    with pytest.raises(ExportError, match=r"(?s)stacks.*fix: .*enable_block_scan\(False\)"):
        graph.export(tmp_path / "x", flow.ones(2, 8), onnx=True)
    with pytest.raises(EngineError, match=r"(?s)draws random numbers.*fix: .*eval"):
        Plain(lambda g, x: x + flow.rand(2)).export(tmp_path / "x", flow.ones(2), onnx=True)
    assert not list(tmp_path.iterdir())
