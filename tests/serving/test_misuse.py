"""Stale files, wrong versions, missing engines: twenty ways to go wrong before a model is served, a message each."""

import importlib
import json
import re
import shutil
import sys

import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.errors import SbpjaxError
from sbpjax.serving import GenerationEngine, Repository, Server, find_server
from sbpjax.serving.openai import Endpoint

from .support import Forward, exported, mlp
from .test_generation import made


def edited(folder, change):
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


class Case:
    """An export of a small model, and what a case does to it."""

    def __init__(self, root, monkeypatch):
        self.root, self.patch = root, monkeypatch
        exported(root)
        self.folder = root / "mlp/1/model"

    def load(self):
        return flow.load_graph(self.folder)

    def other(self):
        """Another export of the same shapes, with other weights."""
        flow.manual_seed(7)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        exported(self.root.parent / "other", graph=Forward(model))
        return self.root.parent / "other/mlp/1/model"

    def without(self, *names):
        """Let packages be missing."""
        real = importlib.import_module

        def gone(name, *args):
            if name.partition(".")[0] in names:
                raise ImportError(f"No module named {name!r}")
            return real(name, *args)

        self.patch.setattr(importlib, "import_module", gone)
        for name in names:
            self.patch.setitem(sys.modules, name, None)

    def on(self, switch, **options):
        graph = self.load()
        getattr(graph, switch)(True, **options)
        return graph(flow.ones(2, 6))


def stale_weights(case):
    shutil.copy(case.other() / "weights.safetensors", case.folder)
    case.load()


def stale_program(case):
    shutil.copy(case.other() / "program.jax_export", case.folder)
    case.load()


def half_a_copy(case):
    path = case.folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-40])
    case.load()


def no_weights(case):
    (case.folder / "weights.safetensors").unlink()
    case.load()


def newer_format(case):
    edited(case.folder, lambda m: m.update(format_version=99))
    case.load()


def newer_jax(case):
    edited(case.folder, lambda m: m["program"].update(calling_convention_version=99))
    case.load()


def other_platform(case):
    Forward(mlp()).export(case.root / "gpu", flow.ones(2, 6), platforms=["cuda"])
    flow.load_graph(case.root / "gpu")


def not_signed(case):
    flow.load_graph(case.folder, key=b"0123456789abcdef")


def training_graph(case):
    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = mlp()
            self.add_optimizer(optim.SGD(self.model.parameters(), lr=0.1))

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    Train().export(case.root / "train", flow.ones(2, 6))
    flow.load_graph(case.root / "train").enable_constant_weights(True)


def too_large(case):
    (case.folder / "more").write_bytes(bytes(2**21))
    Repository(case.root, max_model_mb=1)


def engine_misspelt(case):
    (case.root / "mlp/config.pbtxt").write_text('parameters { key: "engine" value { string_value: "openvno" } }')
    Repository(case.root)


def out_of_the_repository(case):
    other = case.other()
    (case.root / "linked/1").mkdir(parents=True)
    (case.root / "linked/1/model").symlink_to(other)
    Repository(case.root)


def no_kserve(case):
    from sbpjax.serving.kserve_server import serve

    case.without("kserve")
    serve(Repository(case.root))


def no_starlette(case):
    case.patch.setitem(sys.modules, "starlette.applications", None)
    Endpoint(None, "gpt")


def no_triton(case):
    find_server(case.root)


def half_a_key(case):
    case.patch.setattr("sbpjax.serving.triton.find_server", lambda path: path)
    Server(Repository(case.root), certificate="cert.pem")


def missing(package, switch, **options):
    def of(case):
        case.without(package)
        case.on(switch, **options)

    return of


CASES = {
    "weights of another export": (stale_weights, "ExportError", "weights.safetensors", "export again"),
    "a program of another export": (stale_program, "ExportError", "program.jax_export", "export again"),
    "half a copy": (half_a_copy, "ExportError", "weights.safetensors", "export again"),
    "no weights": (no_weights, "ExportError", "no weights.safetensors", "copy the whole directory"),
    "a newer format": (newer_format, "ExportError", "format version 99", "the sbpjax that wrote it"),
    "a newer jax": (newer_jax, "ExportError", "convention 99", "pip install"),
    "another platform": (other_platform, "ExportError", "devices of platform 'cpu'", "platforms="),
    "no signature": (not_signed, "SignatureError", "no manifest.sig", "key=key"),
    "an engine under a training graph": (training_graph, "EngineError", "tensors of the state", "without optimizer"),
    "no openvino": (
        missing("openvino", "enable_openvino"),
        "EngineError",
        "no module openvino",
        'pip install .*"openvino>=',
    ),
    "no onnxruntime": (
        missing("onnxruntime", "enable_onnxruntime"),
        "EngineError",
        "no module onnxruntime",
        'pip install .*"onnxruntime>=',
    ),
    "no iree": (missing("iree", "enable_iree"), "EngineError", "no module iree", 'pip install "iree-base-compiler>='),
    "no nncf": (
        missing("nncf", "enable_openvino", precision="int8"),
        "EngineError",
        "no module nncf",
        'pip install .*"nncf>=',
    ),
    "no tensorrt": (
        missing("onnxruntime", "enable_tensorrt"),
        "EngineError",
        "no module onnxruntime",
        'pip install .*"onnxruntime>=',
    ),
    "a model that is too large": (too_large, "ServingError", "files of 2 MiB", "--max-model-mb"),
    "an engine misspelt": (engine_misspelt, "ServingError", "engine='openvno'", "openvino"),
    "a link out of the repository": (out_of_the_repository, "ServingError", "leads to", "copy the files"),
    "no kserve": (no_kserve, "ServingError", "kserve", "kserve>="),
    "no starlette": (no_starlette, "ServingError", "starlette", 'pip install "starlette>='),
    "no triton": (no_triton, "ServingError", "no tritonserver", "nvidia-pytriton"),
    "a certificate without its key": (half_a_key, "ServingError", "one of certificate", "--private-key"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_message_that_says_what_to_do(name, tmp_path, monkeypatch):
    call, kind, seen, fix = CASES[name]
    (tmp_path / "models").mkdir()
    case = Case(tmp_path / "models", monkeypatch)
    with pytest.raises(SbpjaxError, match=rf"(?s)\n +seen: .*{re.escape(seen)}.*\n +rule: .*\n +fix: .*{fix}") as error:
        call(case)
    assert type(error.value).__name__ == kind


def test_messages_are_unlike_each_other():
    assert len(CASES) >= 20 and len({(case[0], case[2]) for case in CASES.values()}) == len(CASES)


def test_a_model_in_stages_does_not_generate():
    model = made("gpt2")
    for parameter, place in zip(model.parameters(), (0, 1)):
        parameter.data = parameter.data.to_global(flow.placement("cpu", [place]), flow.sbp.broadcast)
    with pytest.raises(SbpjaxError, match=r"(?s)a model on several placements.*without pipeline"):
        GenerationEngine(model, rows=1, blocks=3, block=16, chunk=2, longest=16)
