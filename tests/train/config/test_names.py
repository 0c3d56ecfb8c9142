"""What the names of a configuration file may lead to."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import sbpjax
from sbpjax.errors import ConfigError
from sbpjax.train.config import instantiate, load_config, override
from sbpjax.train.config.lazy import path_of
from sbpjax.train.config.names import FUNCTIONS, KINDS, Allowed, packages_of
from sbpjax.train.load_run import load_run

FOREIGN = [
    "os:system",
    "builtins:eval",
    "builtins:exec",
    "builtins:open",
    "builtins:getattr",
    "subprocess:run",
    "numpy:load",
    "jax:jit",
    "importlib:import_module",
    "tests.train.cases:Tower",
    "/tmp/code.py:f",
    "code.py:f",
]
THROUGH_SBPJAX = [  # below sbpjax, and defined elsewhere
    "sbpjax.train.cli:os.system",
    "sbpjax.train.cli:sys.exit",
    "sbpjax.data.loading.pool:subprocess.run",
    "sbpjax.train.config.lazy:importlib.import_module",
    "sbpjax.train.data.tokenizer:json.loads",
    "sbpjax.nn.module:Any",
    "sbpjax.data.loading.pool:pickle.loads",
    "sbpjax:flow.os",
    "sbpjax.models.config:Path",
    "sbpjax.models.config:dataclasses.make_dataclass",
    "sbpjax.nn.layers.linear:Linear.forward.__globals__",
    "sbpjax.nn.layers.linear:Linear.__init__.__globals__.get",
    "sbpjax.nn.layers.linear:Linear.__class__",
    "sbpjax.nn.layers.linear:Linear.__mro__",
    "sbpjax.nn.layers.linear:Linear.__subclasses__",
    "sbpjax.nn.layers.linear:__builtins__.eval",
    "sbpjax:__loader__.load_module",
    "sbpjax.__main__:main",
]
NO_PARTS = [  # of sbpjax, and no part of a run
    "sbpjax:load",
    "sbpjax:save",
    "sbpjax:load_graph",
    "sbpjax:compile",
    "sbpjax:hub.load",
    "sbpjax.hub:load",
    "sbpjax._core.compat.hub:load",
    "sbpjax.run:main",
    "sbpjax._core.compat.run:main",
    "sbpjax.cache:clear",
    "sbpjax.graph.auto.plan_file:load",
    "sbpjax.auto:load",
    "sbpjax.distributed.launch:main",
    "sbpjax.data.save_load:load",
    "sbpjax.data.loading.worker_main:main",
    "sbpjax.data.loading.pool:Pool",
    "sbpjax.data.checkpoint.manager:Manager",
    "sbpjax.data.checkpoint.torch_allowed:add_safe_globals",
    "sbpjax.train.config:instantiate",
    "sbpjax.train.config.lazy:import_object",
    "sbpjax.train.config.files:run_file",
    "sbpjax.train.load_run:load_run",
    "sbpjax.train.cli:main",
    "sbpjax.train.preprocess:main",
    "sbpjax.train.data:TokenFileWriter",
    "sbpjax.train.trainer:Trainer.fit",
    "sbpjax.nn:Module.load_state_dict",
    "sbpjax.models.pretrained:save_pretrained",
    "sbpjax.vision:from_hub",
    "sbpjax.one_embedding.table_files:PersistentTableWriter",
    "sbpjax.nn.layers.linear:Linear.extra_repr",
]
MALFORMED = ["", ":", "sbpjax", "sbpjax:", ":eval", "a:b:c", "${a}:${b}", "sbpjax .nn:Linear", 3, None, ["os:system"]]
PARTS = [
    "sbpjax.nn.layers.linear:Linear",
    "sbpjax.nn:Linear",
    "sbpjax:nn.Linear",
    "sbpjax.nn.functional:cross_entropy",
    "sbpjax.nn.functional:dropout",
    "sbpjax:relu",
    "sbpjax.nn:Embedding.from_pretrained",
    "sbpjax.optim:AdamW",
    "sbpjax.optim.lr_scheduler:warmup_cosine",
    "sbpjax.optim.lr_scheduler:OneCycleLR",
    "sbpjax.models:Parallel",
    "sbpjax.models:from_pretrained",
    "sbpjax.models.gpt2:GPT2",
    "sbpjax.models.gpt2:GPT2Config",
    "sbpjax.models.gpt2:GPT2Config.from_dict",
    "sbpjax.vision:create_model",
    "sbpjax.vision.transforms:MixUp",
    "sbpjax.one_embedding:make_table",
    "sbpjax.train:Trainer",
    "sbpjax.train:StepOptions",
    "sbpjax.train:Checkpoints",
    "sbpjax.train.data:PackedTokens",
    "sbpjax.train.data:Columns",
    "sbpjax.train.data:read_tokenizer",
    "builtins:dict",
]


@pytest.mark.parametrize("path", FOREIGN + THROUGH_SBPJAX + NO_PARTS + MALFORMED, ids=str)
def test_a_file_calls_nothing_but_parts_of_a_run(path):
    with pytest.raises(ConfigError) as error:
        Allowed().find(path, "trainer.model")
    assert "fix:" in str(error.value)


@pytest.mark.parametrize("path", PARTS)
def test_parts_of_a_run_are_called(path):
    found = Allowed().find(path, "trainer.model")
    assert callable(found) and Allowed().find(path_of(found), "") is not None


def test_a_refused_name_imports_nothing(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "strange_package.py").write_text("def f(): ...\n")
    for path in ("strange_package:f", "strange_package.inner:f"):
        with pytest.raises(ConfigError, match=r"allow=\('strange_package',\)"):
            Allowed().find(path, "x")
    assert "strange_package" not in sys.modules


def test_allowed_packages_files_and_folders(tmp_path):
    with pytest.raises(ConfigError, match="calls 'tests.train.cases:Tower'"):
        Allowed(["tests.trai"]).find("tests.train.cases:Tower", "x")
    for allow in ("tests", ["tests.train"], ("tests.train.cases",)):
        assert Allowed(allow).find("tests.train.cases:Tower", "x").__name__ == "Tower"
    with pytest.raises(ConfigError, match="calls 'tests.train.config.test_names:subprocess.run'"):
        Allowed(["tests"]).find("tests.train.config.test_names:subprocess.run", "x")  # reachable, defined elsewhere
    (tmp_path / "code.py").write_text("import subprocess\ndef f():\n    return 3\n")
    path = f"{tmp_path / 'code.py'}:f"
    for allow in ([str(tmp_path / "code.py")], [str(tmp_path)]):
        assert Allowed(allow).find(path, "x")() == 3
        with pytest.raises(ConfigError):
            Allowed(allow).find(f"{tmp_path / 'code.py'}:subprocess.run", "x")
    for wrong in ([str(tmp_path / "cod")], [str(tmp_path / "other.py")], ["code"]):
        with pytest.raises(ConfigError, match=r"--allow .*code\.py"):
            Allowed(wrong).find(path, "x")
    assert Allowed(trust=True).find("os:getcwd", "x")() == str(Path.cwd())
    with pytest.raises(ConfigError, match="allow=3|names of packages"):
        Allowed([3])


def test_kinds_and_functions_are_there():
    """A name in the table that is moved would no longer be called."""
    for name in [*KINDS, *(one for one in FUNCTIONS if ":" in one)]:
        module, _, attribute = name.partition(":")
        assert getattr(importlib.import_module(module), attribute).__module__ == module, name


def test_what_an_override_calls_is_checked_too(tmp_path):
    config = OmegaConf.create({"a": {"_call_": "tests.train.cases:Tower"}, "text": "t", "b": {}, "c": None})
    assert packages_of(OmegaConf.to_container(config)) == {"tests"}
    for change in (
        "c={_call_: os:system}",
        "b.x={y: [{_named_: 'os:system'}]}",
        "b._named_=os:system",
        "text=${oc.create:'{_call_: os:system}'}",
        "text=${oc.decode:'{_call_: os:system}'}",
        "text=${nowhere:1}",
    ):
        with pytest.raises(ConfigError, match="os:system|nowhere"):
            override(config, [change])
    assert override(config, ["text=${oc.env:HOME,x}"]).text
    assert override(config, ["c={_call_: tests.train.cases:Points}"]).c["_call_"].endswith("Points")
    (tmp_path / "mine.py").write_text("def f():\n    return 3\n")  # on the user's own command line
    assert instantiate(override(config, [f"c={{_call_: '{tmp_path / 'mine.py'}:f'}}"]).c) == 3
    assert override(config, ["c={_call_: os:getcwd}"], trust=True).c["_call_"] == "os:getcwd"
    assert override(config, ["c={_call_: 'math:sqrt'}"], allow=["math"])


@pytest.mark.parametrize("call", ["os:system", "sbpjax.train.cli:os.system", "{folder}/code.py:f"])
def test_the_directory_of_a_stranger_runs_nothing(call, tmp_path):
    """However it is read: in Python, to be served, to be trained or evaluated."""
    run, mark = tmp_path / "run", tmp_path / "ran"
    (run / "checkpoints").mkdir(parents=True)
    (run / "code.py").write_text(f"open({str(mark)!r}, 'w')\ndef f(*_): ...\n")
    call = call.format(folder=run)
    text = f"# sbpjax {sbpjax.__version__}\ntrainer:\n  model:\n    _call_: {call}\n    _arguments_: ['touch {mark}']\n"
    (run / "config.yaml").write_text(text)
    for read in (lambda: load_run(run), lambda: instantiate(load_config(run / "config.yaml").trainer)):
        with pytest.raises(ConfigError, match="trainer.model calls"):
            read()
    for command in (
        ["sbpjax.serving.from_run", str(run), "repository/m", "--input", "x:3"],
        ["sbpjax.train", str(run / "config.yaml"), "--eval-only"],
        ["sbpjax.train", str(run / "config.yaml")],
    ):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 1 and "trainer.model calls" in done.stderr and "Traceback" not in done.stderr
    assert not mark.exists()
