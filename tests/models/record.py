"""What `transformers` computes with tiny random models: ``python -m tests.models.record``, where it is installed.

Names of cases behind it record these alone: ``python -m tests.models.record mixtral``.

A folder of `data/` for each case: `config.json` and `model.safetensors` as `save_pretrained` writes them,
`gradients.safetensors` of the loss by the same names, and `facts.npz` with inputs, logits and loss. Beside them
`rotary.json`: frequencies of every scaling; `generated.json`: tokens behind prompts. `transformers` is no test
dependency, so the tests read what is recorded.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
VERSION = "5.23.0"  # of transformers
LLAMA = {
    "vocab_size": 31,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,  # far from what a model without one of its layers would give
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
BERT = {
    "vocab_size": 31,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 16,
    "initializer_range": 0.3,
}
T5 = {
    "vocab_size": 31,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 20,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
    "decoder_start_token_id": 0,
}
SEQ2SEQ = ("t5", "t5_v11")
ROTARY = {
    "default": {"rope_type": "default", "rope_theta": 10000.0},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "llama3": LLAMA3,
    "yarn": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64},
}


def models(t, torch):
    """Return the models by the name of their case."""
    llama = t.LlamaConfig(**LLAMA, rope_parameters=LLAMA3, attention_bias=True, mlp_bias=True)
    yield "llama", t.LlamaForCausalLM(llama)
    mistral = t.MistralConfig(**LLAMA, sliding_window=4, tie_word_embeddings=True)
    yield "mistral", t.MistralForCausalLM(mistral)
    kinds = ["full_attention", "sliding_attention"]
    windows = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1, "layer_types": kinds}
    yield "qwen2", t.Qwen2ForCausalLM(t.Qwen2Config(**LLAMA, **windows))
    yield "qwen3", t.Qwen3ForCausalLM(t.Qwen3Config(**LLAMA, head_dim=6))
    gpt2 = {"vocab_size": 31, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}
    yield "gpt2", t.GPT2LMHeadModel(t.GPT2Config(**gpt2, bos_token_id=0, eos_token_id=0))
    yield "bert", t.BertForPreTraining(t.BertConfig(**BERT))
    yield "bert_classes", t.BertForSequenceClassification(t.BertConfig(**BERT, num_labels=3))
    routed = {"num_local_experts": 4, "output_router_logits": True, "router_aux_loss_coef": 0.1}
    yield "mixtral", t.MixtralForCausalLM(t.MixtralConfig(**LLAMA, **routed))
    torch.manual_seed(1)
    yield "t5", t.T5ForConditionalGeneration(t.T5Config(**T5, num_layers=2))
    gated = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    model = t.T5ForConditionalGeneration(t.T5Config(**T5, **gated, num_layers=2, num_decoder_layers=1))
    model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight))
    model.config.tie_word_embeddings = False  # transformers says that all are tied, and keeps what files have apart
    yield "t5_v11", model


def inputs(case):
    """Return what a model of a case is given; targets of tokens stand at the position that tells them."""
    random = np.random.default_rng(sum(map(ord, case)))
    tokens = random.integers(1, 31, (2, 9))  # 0 is BERT's padding, for which transformers trains no vector
    present = np.arange(9)[None] < np.array([[9], [6]])
    if case == "bert_classes":
        return {"tokens": tokens, "targets": random.integers(0, 3, 2), "present": present}
    given = {"tokens": tokens, "targets": np.where(present, random.integers(0, 31, (2, 9)), -100), "present": present}
    if case == "bert":
        given |= {"pairs": np.array([0, 1]), "segments": (np.arange(9)[None] > np.array([[4], [2]])).astype(np.int64)}
    return given


def facts(torch, case, model):
    """Return logits and loss of a model, with the gradients of the loss in its parameters."""
    given = {name: torch.tensor(value) for name, value in inputs(case).items()}
    arguments = {"input_ids": given["tokens"], "attention_mask": given["present"].long()}
    if case == "bert":
        out = model(**arguments, token_type_ids=given["segments"])
        logits = {"logits": out.prediction_logits, "follows": out.seq_relationship_logits}
    elif case in SEQ2SEQ:
        logits = {"logits": model(**arguments, decoder_input_ids=model._shift_right(given["targets"])).logits}
    else:
        out = model(**arguments)
        logits = {"logits": out.logits}
    entropy = torch.nn.functional.cross_entropy
    loss = entropy(logits["logits"].flatten(0, -2), given["targets"].flatten())
    if case == "bert":
        loss = loss + entropy(logits["follows"], given["pairs"])
    if case == "mixtral":
        loss = loss + model.config.router_aux_loss_coef * out.aux_loss
    loss.backward()
    return {"loss": loss} | logits


PROMPTS = [[3, 5, 7, 2, 9], [4, 1], [8], [11, 12, 13]]
NEW_TOKENS = 10


def generated(torch, model):
    """Return what a model says behind `PROMPTS`, padded on the left; with a stop, the token that comes third first."""
    length = max(map(len, PROMPTS))
    tokens = torch.tensor([[0] * (length - len(prompt)) + prompt for prompt in PROMPTS])
    present = torch.tensor([[0] * (length - len(prompt)) + [1] * len(prompt) for prompt in PROMPTS])
    options = {"attention_mask": present, "max_new_tokens": NEW_TOKENS, "do_sample": False, "pad_token_id": 0}

    start = 1 if model.config.is_encoder_decoder else length

    def run(**more):
        with torch.no_grad():
            return model.generate(tokens, **options, **more)[:, start:].tolist()

    greedy = run(eos_token_id=None)
    stop = greedy[0][2]
    return {
        "greedy": greedy,
        "stop": stop,
        "stopped": run(eos_token_id=stop),
        "beams": run(num_beams=3, eos_token_id=None),
        "stopped_beams": run(num_beams=3, eos_token_id=stop, length_penalty=0.5),
    }


def main(only):
    import torch
    import transformers as t
    from safetensors.torch import save_file
    from transformers.core_model_loading import revert_weight_conversion

    assert t.__version__ == VERSION
    path = DATA / "generated.json"
    recorded = json.loads(path.read_text()) if only else {}
    for case in only or [folder.name for folder in DATA.glob("*/")]:
        shutil.rmtree(DATA / case, ignore_errors=True)
    torch.manual_seed(0)
    for case, model in models(t, torch):
        for parameter in model.parameters():  # norms and biases too
            parameter.data += 0.1 * torch.randn_like(parameter)
        if only and case not in only:
            continue
        model.eval().save_pretrained(DATA / case)
        (DATA / case / "generation_config.json").unlink(missing_ok=True)
        found = {name: value.detach().numpy() for name, value in facts(torch, case, model).items()}
        np.savez(DATA / case / "facts.npz", **inputs(case), **found)
        if case not in ("bert", "bert_classes"):
            model.config.output_router_logits = False  # transformers cannot generate with them
            recorded[case] = generated(torch, model)
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        gradients = revert_weight_conversion(model, gradients)  # by the names of the files
        save_file(gradients, DATA / case / "gradients.safetensors")
    path.write_text(json.dumps(recorded, indent=1) + "\n")
    rotary = {}
    for name, table in ROTARY.items():
        config = t.LlamaConfig(
            hidden_size=64, num_attention_heads=4, max_position_embeddings=256, rope_parameters=table
        )
        made = t.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
        rotary[name] = {"frequencies": made.inv_freq.tolist(), "factor": made.attention_scaling}
    (DATA / "rotary.json").write_text(json.dumps(rotary, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
