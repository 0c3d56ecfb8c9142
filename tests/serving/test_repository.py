"""Repositories as Triton lays them out: configurations of manifests, and a message for each that is none."""

import json
import shutil

import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.errors import ServingError
from sbpjax.serving import Repository

from .support import Forward, exported, mlp


def test_only_a_path_is_given(tmp_path):
    exported(tmp_path, version=1)
    exported(tmp_path, version=4)
    exported(tmp_path, "fixed", dynamic=False)
    fixed, free = Repository(tmp_path).models
    assert (free.name, free.versions, free.max_batch) == ("mlp", (1, 4), 16)
    assert free.config().startswith('name: "mlp"\nbackend: "python"\nmax_batch_size: 16\n')
    assert 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 6 ] } ]' in free.config()
    assert 'output [ { name: "output" data_type: TYPE_FP32 dims: [ 3 ] } ]' in free.config()
    assert "max_queue_size: 1024" in free.config() and "timeout_action: REJECT" in free.config()
    assert "max_batch_size: 0" in fixed.config() and "dims: [ 2, 6 ]" in fixed.config()
    assert "dynamic_batching" not in fixed.config()


def test_what_a_configuration_says_stands(tmp_path):
    exported(tmp_path)
    text = (
        'max_batch_size: 4  # dynamic_batching { }\nparameters { key: "engine" value { string_value: "openvino" } }\n'
    )
    (tmp_path / "mlp/config.pbtxt").write_text(text)
    (model,) = Repository(tmp_path, max_batch=8).models
    assert model.engine == "openvino"
    assert model.config().count("max_batch_size") == 1 and "dynamic_batching { max_queue" in model.config()


def test_names_of_nested_inputs_and_of_several_outputs(tmp_path):
    class Two(nn.Graph):
        def build(self, batch):
            return {"sum": batch["a"] + batch["b"], "flag": batch["a"] > 0}

    given = {"a": flow.ones(2, 3), "b": flow.ones(2, 3)}
    Two().export(tmp_path / "two/1/model", given, dynamic_batch=True)
    (model,) = Repository(tmp_path).models
    assert [port.name for port in model.inputs] == ["batch_a", "batch_b"]
    assert [(port.name, port.dtype) for port in model.outputs] == [("output_sum", "float32"), ("output_flag", "bool")]


def _trains(folder):
    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = mlp()
            self.add_optimizer(optim.SGD(self.model.parameters(), lr=0.1))

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    Train().export(folder / "mlp/1/model", flow.ones(2, 6))


def _sharded(folder):
    class Double(nn.Graph):
        def build(self, x):
            return x * 2

    x = flow.ones(4, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))
    Double().export(folder / "double/1/model", x)


def _complex(folder):
    class Turn(nn.Graph):
        def build(self, x):
            return flow.complex(x, x)

    Turn().export(folder / "turn/1/model", flow.ones(2))


def _damaged(folder):
    exported(folder)
    (folder / "mlp/1/model/manifest.json").write_text("[" * 100_000)


def _without_leaves(folder):
    exported(folder)
    (folder / "mlp/1/model/manifest.json").write_text(json.dumps({"inputs": {}}))


def _numbers(folder):
    exported(folder)
    path = folder / "mlp/1/model/manifest.json"
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"state": {"inputs": [1, 2]}}))


def _config_bytes(folder):
    exported(folder)
    (folder / "mlp/config.pbtxt").write_bytes(b'name: "\xff"')


def _config_folder(folder):
    exported(folder)
    (folder / "mlp/config.pbtxt").mkdir()


def _link(folder):
    exported(folder.parent / "elsewhere")
    (folder / "mlp/1").mkdir(parents=True)
    (folder / "mlp/1/model").symlink_to(folder.parent / "elsewhere/mlp/1/model")


def _config_link(folder):
    exported(folder)
    (folder.parent / "secret").write_text("key")
    (folder / "mlp/config.pbtxt").symlink_to(folder.parent / "secret")


def _engine(folder):
    exported(folder)
    text = 'parameters { key: "engine" value { string_value: "fast" } }'
    (folder / "mlp/config.pbtxt").write_text(text)


def _version(folder):
    exported(folder)
    shutil.move(folder / "mlp/1", folder / "mlp/newest")


def _empty_version(folder):
    (folder / "mlp/2").mkdir(parents=True)


def _name(folder):
    exported(folder, "a model")


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda folder: folder.rmdir(), "no such folder"),
        (lambda folder: None, "a folder without models"),
        (_version, "mlp without versions"),
        (_empty_version, r"no mlp/2/model/manifest.json"),
        (_name, "a folder 'a model'"),
        (_damaged, "a damaged manifest.json"),
        (_without_leaves, "a damaged manifest.json"),
        (_numbers, "a damaged manifest.json"),
        (_config_bytes, "config.pbtxt: 'utf-8' codec"),
        (_config_folder, "config.pbtxt: .*Is a directory"),
        (_link, "leads to"),
        (_config_link, "leads to"),
        (_engine, "engine='fast'"),
        (_trains, "a graph that writes its state"),
        (_sharded, "a sharded graph"),
        (_complex, "output output of complex64"),
    ],
)
def test_what_cannot_be_served(make, expected, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    make(folder)
    with pytest.raises(ServingError, match=rf"(?s)serving .*seen: .*{expected}.*rule: .*fix: "):
        Repository(folder)


@pytest.mark.parametrize("option", [{"engine": "fast"}, {"max_batch": 0}, {"max_queue": 0}, {"timeout_s": 0}])
def test_wrong_options(option, tmp_path):
    exported(tmp_path)
    with pytest.raises(ServingError, match=r"(?s)seen: .*rule: .*fix: "):
        Repository(tmp_path, **option)


def test_a_graph_is_what_is_served(tmp_path):
    model = exported(tmp_path)
    (served,) = Repository(tmp_path).models
    loaded, x = flow.load_graph(served.export(1)), flow.ones(3, 6)
    assert (loaded(x).numpy() == Forward(model)(x).numpy()).all()
