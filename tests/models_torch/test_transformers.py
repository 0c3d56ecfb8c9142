"""The modeling files of `transformers` itself, with random weights: PyTorch's losses, outputs and gradients.

`transformers` is no test dependency: these tests run where it is installed.
"""

import importlib.util
import os

import numpy as np
import pytest
import torch

import sbpjax
from sbpjax import mock_torch
from tests.models_torch.both import TOLERANCE, to_numpy

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed"),
    pytest.mark.exhaustive,
    pytest.mark.filterwarnings("ignore"),  # other packages' own
]
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 64}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def gpt2(t):
    options = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return t.GPT2LMHeadModel(t.GPT2Config(vocab_size=61, n_positions=32, n_embd=32, n_layer=2, n_head=4, **options))


def bert(t):
    return t.BertForMaskedLM(t.BertConfig(vocab_size=53, max_position_embeddings=32, **SIZES, **NO_DROPOUT))


def vit(t):
    return t.ViTForImageClassification(t.ViTConfig(image_size=32, patch_size=8, num_labels=5, **SIZES, **NO_DROPOUT))


def batch(name):
    rng = np.random.default_rng(0)
    if name == "vit":
        images = rng.standard_normal((2, 3, 32, 32)).astype("f")
        return {"pixel_values": images, "labels": rng.integers(0, 5, (2,))}
    ids = rng.integers(0, 53, (2, 12))
    if name == "gpt2":
        return {"input_ids": ids, "labels": ids}
    mask = (np.arange(12)[None] < np.array([12, 8])[:, None]).astype(np.int64)
    return {"input_ids": ids, "attention_mask": mask, "labels": np.where(rng.random(ids.shape) < 0.3, ids, -100)}


def results(model, inputs):
    out = model.train()(**inputs)
    out.loss.backward()
    found = {"loss": out.loss, "logits": out.logits}
    return found | {k: p.grad for k, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("make", [gpt2, bert, vit], ids=lambda f: f.__name__)
def test_same_as_pytorch(make, monkeypatch):
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    name = make.__name__
    torch.manual_seed(0)
    import transformers

    model = make(transformers)
    weights = {k: v.detach().clone().numpy() for k, v in model.state_dict().items()}
    wanted = results(model, {k: torch.from_numpy(v) for k, v in batch(name).items()})
    with mock_torch.enable(packages=["transformers"]):
        import transformers

        model = make(transformers)
        assert isinstance(model, sbpjax.nn.Module)
        model.load_state_dict({k: sbpjax.from_numpy(v) for k, v in weights.items()})
        found = results(model, {k: sbpjax.from_numpy(v) for k, v in batch(name).items()})
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        value = to_numpy(value)
        scale = max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(to_numpy(found[key]), value, rtol=TOLERANCE, atol=TOLERANCE * scale, err_msg=key)
