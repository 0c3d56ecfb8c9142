"""From a folder of Hugging Face, by the command, to such a folder: adapters as on the page, and a classifier."""

import importlib.util
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import checkpoint, models
from sbpjax.models import lora
from sbpjax.models.llama import Llama, LlamaConfig
from sbpjax.train.cli import main
from sbpjax.train.config import instantiate
from tests.train import class_config
from tests.train.cases import losses

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "lora.md"
SPEC = models.Parallel(tensor=2, device="cpu")
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


def trained(model, run):
    """Return a model with the parameters of a run, laid out on two devices."""
    models.parallelize(model, SPEC)
    with checkpoint.Manager(f"{run}/checkpoints") as manager:
        assert manager.restore(into={"model": model}, strict=False) is not None
    return model.eval()


def logits(model, tokens):
    return model(SPEC.place(tokens)).numpy()


@needs_transformers
@pytest.mark.filterwarnings("ignore")  # other packages' own
def test_adapters_by_the_configuration_of_the_page(tmp_path, monkeypatch, capsys):
    import torch
    import transformers

    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    Path("tune.py").write_text(next(program for program in programs if program.startswith("# tune.py")))
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    flow.manual_seed(0)
    models.save_pretrained(Llama(LlamaConfig(vocab_size=32, **sizes)), "base")
    exec(next(program for program in programs if "TokenFileWriter" in program), {})
    main(["tune.py", "trainer.log_every=1"])
    found = losses(Path("tuned-run"))
    assert found[max(found)] < found[min(found)]
    model = trained(runpy.run_path("tune.py")["adapted"]("base", ["*.attention.[qv]"], 4), "tuned-run")
    lora.save(model, "adapter", base="base")
    again = lora.load(models.from_pretrained("base", SPEC), "adapter").eval()
    tokens = np.arange(12).reshape(2, 6)
    np.testing.assert_allclose(logits(again, tokens), logits(model, tokens), rtol=1e-6)
    models.save_pretrained(lora.merge(again), "whole")
    theirs = transformers.LlamaForCausalLM.from_pretrained("whole").eval()
    with torch.no_grad():
        np.testing.assert_allclose(theirs(torch.tensor(tokens)).logits.numpy(), logits(model, tokens), atol=1e-5)


@needs_transformers
@pytest.mark.filterwarnings("ignore")  # other packages' own
def test_a_classifier_of_texts(tmp_path, monkeypatch, capsys):
    import torch
    import transformers

    monkeypatch.chdir(tmp_path)
    class_config.lay(tmp_path)
    hook = 'trainer.hooks = {"checkpoints": LazyCall(Checkpoints)(every=20)}\n'
    head = "from sbpjax.train import Checkpoints\nfrom tests.train.class_config import *\n"
    Path("c.py").write_text(head + hook)
    main(["c.py", "trainer.max_steps=40", "trainer.optimizer.lr=0.02", "trainer.parallel.tensor=2"])
    model = trained(models.from_pretrained("base"), "run")
    table = instantiate(runpy.run_path("c.py")["trainer"].data, "trainer.data")
    samples = [table[i] for i in range(2)]
    tokens, present = (np.stack([sample[name] for sample in samples]) for name in ("input_ids", "attention_mask"))
    found = model(SPEC.place(tokens), attention_mask=SPEC.place(present)).numpy()
    assert found.argmax(-1).tolist() == [int(sample["labels"]) for sample in samples]
    models.save_pretrained(model, "classifier")
    theirs = transformers.BertForSequenceClassification.from_pretrained("classifier").eval()
    with torch.no_grad():
        want = theirs(torch.tensor(tokens), attention_mask=torch.tensor(present)).logits.numpy()
    np.testing.assert_allclose(found, want, atol=1e-5)
