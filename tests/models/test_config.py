"""Configurations: a file's fields are the model's, or say nothing of it, or are refused."""

import pytest

from sbpjax.errors import ConfigError
from sbpjax.models.bert import BertConfig
from sbpjax.models.gpt2 import GPT2Config
from sbpjax.models.llama import LlamaConfig
from tests.models.cases import BERT_SIZE, GPT2_SIZE, LLAMA


def test_fields_that_say_nothing_of_the_model_come_back():
    given = {
        **GPT2_SIZE,
        "model_type": "gpt2",
        "bos_token_id": 5,
        "summary_type": "cls_index",
        "torch_dtype": "float16",
    }
    config = GPT2Config.from_dict(given)
    assert config == GPT2Config(**GPT2_SIZE) and config.to_dict().items() >= given.items()


def test_fields_with_one_value():
    assert GPT2Config.from_dict({**GPT2_SIZE, "scale_attn_weights": True}).to_dict()["scale_attn_weights"] is True
    with pytest.raises(ConfigError, match=r"is_decoder=True[\s\S]*BertConfig knows is_decoder=False"):
        BertConfig.from_dict({**BERT_SIZE, "is_decoder": True})


def test_unknown_and_missing_fields():
    with pytest.raises(ConfigError, match=r"reading here[\s\S]*n_heads=4[\s\S]*write 'n_head'"):
        GPT2Config.from_dict({**GPT2_SIZE, "n_heads": 4}, "here")
    with pytest.raises(ConfigError, match=r"no n_embd, n_head"):
        GPT2Config.from_dict({"vocab_size": 5, "n_positions": 4, "n_layer": 1})
    with pytest.raises(ValueError):  # as PyTorch's users catch it
        GPT2Config.from_dict({})


@pytest.mark.parametrize(
    "make, seen",
    [
        (lambda: LlamaConfig(model_type="lama"), "model_type='lama'"),
        (lambda: LlamaConfig(hidden_size=30, num_attention_heads=4), "hidden_size=30, 4 heads"),
        (lambda: LlamaConfig(**LLAMA, head_dim=5), "heads of 5"),
        (lambda: LlamaConfig(**LLAMA, layer_types=("full_attention",)), r"layer_types=\('full_attention',\)"),
        (lambda: LlamaConfig(**LLAMA, rope_scaling={"rope_type": "linear"}), "linear needs factor"),
        (lambda: LlamaConfig(**LLAMA, rope_scaling={"rope_type": "linear", "factor": 2, "mscale": 1}), "mscale"),
        (lambda: GPT2Config(n_embd=30, n_head=4), "n_embd=30, n_head=4"),
        (lambda: GPT2Config(activation_function="gelus"), "activation_function='gelus'"),
        (lambda: GPT2Config(model_type="gpt"), "model_type='gpt'"),
        (lambda: BertConfig(hidden_act="none"), "hidden_act='none'"),
        (lambda: BertConfig(hidden_size=30, num_attention_heads=4), "hidden_size=30, 4 heads"),
        (lambda: BertConfig(model_type="bart"), "model_type='bart'"),
    ],
)
def test_fields_that_contradict_each_other(make, seen):
    with pytest.raises(ConfigError, match=seen) as error:
        make()
    assert all(part in str(error.value) for part in ("\n  seen: ", "\n  rule: ", "\n  fix:  "))


def test_rotary_fields_of_older_and_newer_files():
    old = {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}}
    new = {"rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2.0}}
    configs = [LlamaConfig.from_dict({**LLAMA, "model_type": "llama", **fields}) for fields in (old, new)]
    assert configs[0] == configs[1] and configs[0].rope_scaling == {"rope_type": "linear", "factor": 2.0}
    yarn = {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "max_position_embeddings": 128}
    found = LlamaConfig.from_dict({**LLAMA, **yarn}).rope_scaling
    assert found["original_max_position_embeddings"] == 128


def test_windows():
    qwen = {**LLAMA, "model_type": "qwen2", "sliding_window": 8}
    assert LlamaConfig.from_dict({**qwen, "use_sliding_window": False}).window(0) is None
    kinds = ["full_attention", "sliding_attention"]
    mixed = LlamaConfig.from_dict({**qwen, "use_sliding_window": True, "layer_types": kinds})
    assert [mixed.window(i) for i in range(2)] == [None, 8]
    assert LlamaConfig(**LLAMA, sliding_window=8).window(1) == 8


def test_labels():
    names = {"id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"a": 0, "b": 1, "c": 2}}
    config = BertConfig.from_dict({**BERT_SIZE, **names})
    assert config.num_labels == 3 and config.to_dict()["id2label"] == names["id2label"]
    changed = BertConfig.from_dict({**BERT_SIZE, **names, "num_labels": 2})
    assert changed.num_labels == 2 and "id2label" not in changed.to_dict()
    assert len(BertConfig(num_labels=5).to_dict()["label2id"]) == 5
