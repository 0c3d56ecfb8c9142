"""A reader writes down the files of `docs/how_to/new_model.md`, and has a family: in training, generation and files."""

import importlib
import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models
from sbpjax.train.cli import main as train
from sbpjax.train.preprocess import main as preprocess
from tests.models.cases import Step

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "new_model.md"
SIZE = {
    "vocab_size": 31,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 6,
}


@pytest.fixture
def gemma(tmp_path, monkeypatch):
    """Return the package of the page's files; its programs lie beside it."""
    (tmp_path / "gemma").mkdir()
    (tmp_path / "gemma" / "__init__.py").touch()
    found = re.findall(r"```python\n# ([\w/]+\.py)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert [name for name, _ in found if "/" in name] == [
        f"gemma/{name}.py" for name in ("config", "model", "sharding", "weights")
    ]
    for name, text in found:
        (tmp_path / name).write_text(text)
    config = dict(found)["gemma/config.py"]
    assert len(re.findall(r"^    \w+: \w+ = ", config, flags=re.MULTILINE)) <= 20
    assert len(dict(found)["run.py"].splitlines()) <= 25  # with its imports
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("gemma")
    for name in [name for name in sys.modules if name.split(".")[0] == "gemma"]:
        del sys.modules[name]


def made(gemma):
    config = importlib.import_module("gemma.config").GemmaConfig(**SIZE)
    return importlib.import_module("gemma.model").Gemma(config)


def run(name):
    names = {"__name__": "page"}
    exec(Path(name).read_text(), names)
    return names


def test_the_commands_of_the_page_train_it_and_it_speaks(gemma, capsys):
    commands = re.findall(r"^python -m sbpjax\.(train[.\w]*) (.*)", PAGE.read_text(), flags=re.MULTILINE)
    assert [name for name, _ in commands] == ["train.preprocess", "train", "train"]
    Path("texts").mkdir()
    for page in ("models.md", "layouts.md"):
        (Path("texts") / page).write_text((PAGE.parent / page).read_text())
    words = [word for word in commands[0][1].split() if word != "texts/*.md"]
    preprocess([*map(str, Path("texts").iterdir()), *words, "--workers", "1"])
    for _, words in commands[1:]:
        train(words.split())
    records = map(json.loads, Path("gemma-run/metrics.jsonl").read_text().splitlines())
    losses = [record["loss"] for record in records if "loss" in record]
    assert len(losses) == 4 and losses[-1] < losses[0] - 0.5  # on two pages: something of what they say is learned
    assert [len(text) > 0 for text in run("say.py")["answers"]] == [True] * 2
    sys.modules.pop("run")


def test_it_is_written_and_read_as_a_folder(gemma):
    models.save_pretrained(made(gemma), "folder", family=gemma)
    run("read_gemma.py")
    assert {file.name for file in Path("again").iterdir()} == {"config.json", "model.safetensors"}


def test_a_mesh_trains_it_as_one_device_does(gemma):
    def losses(spec):
        flow.manual_seed(0)
        step = Step(models.parallelize(made(gemma), spec), 4 if spec.pipeline > 1 else 1)
        batches = np.random.default_rng(0).integers(0, 31, (3, 2, 8, 6))
        return [step(*map(spec.place, batch)).mean().item() for batch in batches]

    alone = losses(models.Parallel(device="cpu"))
    for mesh in ({"data": 2, "fsdp": 2, "tensor": 2}, {"pipeline": 2, "tensor": 2}):
        np.testing.assert_allclose(losses(models.Parallel(**mesh, device="cpu")), alone, rtol=1e-5)


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.filterwarnings("ignore")  # other packages' own
def test_it_computes_what_transformers_does(gemma):
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.GemmaConfig(**SIZE, initializer_range=0.3, max_position_embeddings=64)
    theirs = transformers.GemmaForCausalLM(config).eval()
    for parameter in theirs.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    theirs.save_pretrained("theirs")
    ours = models.from_pretrained("theirs", family=gemma)
    tokens = np.random.default_rng(0).integers(1, 31, (2, 9))
    with torch.no_grad():
        want = theirs(torch.tensor(tokens)).logits.numpy()
        generated = theirs.generate(torch.tensor(tokens), max_new_tokens=6, do_sample=False, eos_token_id=None)[:, 9:]
    np.testing.assert_allclose(ours(flow.tensor(tokens)).detach().numpy(), want, rtol=1e-4, atol=1e-4)
    assert models.generate(ours, tokens.tolist(), 6) == generated.tolist()
    models.save_pretrained(ours, "ours", family=gemma)
    again = transformers.GemmaForCausalLM.from_pretrained("ours")
    with torch.no_grad():
        np.testing.assert_allclose(again(torch.tensor(tokens)).logits.numpy(), want, rtol=1e-4, atol=1e-4)
