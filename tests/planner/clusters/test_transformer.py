"""Sizes of transformers: parameters and FLOPs by hand, and by the models of `sbpjax.models`."""

import json

import pytest

import sbpjax as flow
from sbpjax.errors import ConfigError
from sbpjax.models.llama import Llama, LlamaConfig
from sbpjax.models.mixtral import Mixtral, MixtralConfig
from sbpjax.plan import MODELS, transformer

NORMS = 1e-3  # share of norms, which the counts leave out


@pytest.mark.parametrize(("name", "billions"), [("llama-8b", 8.03), ("llama-70b", 70.6), ("llama-405b", 405.8)])
def test_parameters_are_the_published_ones(name, billions):
    assert MODELS[name].parameters / 1e9 == pytest.approx(billions, rel=2e-3)


def test_a_config_has_the_parameters_of_its_model(tmp_path):
    dense = {"vocab_size": 512, "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 3}
    dense |= {"num_attention_heads": 8, "num_key_value_heads": 2}
    sparse = dense | {"num_local_experts": 4, "num_experts_per_tok": 2}
    for sizes, build in ((dense, lambda s: Llama(LlamaConfig(**s))), (sparse, lambda s: Mixtral(MixtralConfig(**s)))):
        file = tmp_path / "config.json"
        file.write_text(json.dumps(sizes))
        with flow.abstract():
            counted = sum(p.numel() for p in build(sizes).parameters())
        assert transformer(str(file)).parameters == pytest.approx(counted, rel=5 * NORMS)


def test_flops_count_active_experts_and_causal_pairs():
    model = MODELS["mixtral-8x7b"]
    block = 4096 * 2 * (4096 + 1024) + 2 * 3 * 4096 * 14336
    assert model.product_flops() == 6 * (32 * block + 32000 * 4096)
    assert model.attention_flops(2048) == 3 * 32 * (4 * 2048 * 4096 / 2)  # scores and values, half of the pairs


def test_unknown_models_and_sizes_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="llama-70b"):
        transformer("llama-71b")
    file = tmp_path / "config.json"
    file.write_text("{}")
    with pytest.raises(ConfigError, match="no num_hidden_layers, hidden_size"):
        transformer(str(file))
    file.write_text('{"model_type": "gpt2", "vocab_size": 5}')
    with pytest.raises(ConfigError, match="model_type 'gpt2', no num_hidden.*\n.*not GPT-2") as caught:
        transformer(str(file))
    assert str(caught.value).count("seen:") == 1
