"""The recorded cases of `record.py`, and models on a mesh in a training step."""

from __future__ import annotations

import numpy as np

import sbpjax as flow
from sbpjax import models, nn, optim
from sbpjax.models.bert import BertConfig, BertForPreTraining, BertForSequenceClassification
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.models.llama import Llama, LlamaConfig
from sbpjax.models.mixtral import Mixtral, MixtralConfig
from sbpjax.models.t5 import T5, T5Config
from tests.models.record import DATA

CASES = ("llama", "mistral", "qwen2", "qwen3", "gpt2", "bert", "bert_classes", "mixtral", "t5", "t5_v11")
LLAMA = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
ROUTED = {"num_local_experts": 4, "output_router_logits": True, "router_aux_loss_coef": 0.1, "router_z_loss_coef": 0.01}
GPT2_SIZE = {"vocab_size": 61, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4}
BERT_SIZE = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 16,
}
T5_SIZE = {"vocab_size": 61, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
TRAINED = {
    "llama": lambda: Llama(LlamaConfig(**LLAMA)),
    "qwen3": lambda: Llama(LlamaConfig(**LLAMA, model_type="qwen3", tie_word_embeddings=True)),
    "gpt2": lambda: GPT2(GPT2Config(**GPT2_SIZE)),
    "bert": lambda: BertForPreTraining(BertConfig(**BERT_SIZE)),
    "bert_classes": lambda: BertForSequenceClassification(BertConfig(**BERT_SIZE, num_labels=3)),
    "mixtral": lambda: Mixtral(MixtralConfig(**LLAMA, **ROUTED)),
    "mixtral_capacity": lambda: Mixtral(MixtralConfig(**LLAMA, **ROUTED, capacity_factor=1.25)),
    "t5": lambda: T5(T5Config(**T5_SIZE)),
    "t5_v11": lambda: T5(T5Config(**T5_SIZE, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
}


def facts(case):
    """Return inputs, logits and loss of a recorded case."""
    with np.load(DATA / case / "facts.npz") as file:
        return dict(file)


def arguments(case, given, place=flow.tensor):
    """Return the positional arguments of a model's loss, and the keyword arguments of loss and forward."""
    names = ["tokens", "targets"] + (["pairs"] if case == "bert" else [])
    loss = [place(given[name]) for name in names]
    keywords = {"attention_mask": "present", "token_type_ids": "segments"}
    others = {keyword: place(given[name]) for keyword, name in keywords.items() if name in given}
    return loss, others


class Step(nn.Graph):
    """A training step of a model.

    Args:
        model: it.
        micro_batches: of a step.
        stage: of ZeRO, 0 for none.
    """

    def __init__(self, model, micro_batches=1, stage=0):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.AdamW(model.parameters(), lr=3e-3))
        self.config.set_gradient_accumulation_steps(micro_batches)
        if stage:
            self.config.enable_zero(True, stage=stage)

    def build(self, *batch):
        loss = self.model.loss(*batch)
        loss.backward()
        return loss


def losses(case, spec, steps, micro_batches=1, stage=0, length=12):
    """Return the losses of the first steps of a model of `TRAINED` on sequences of a length, dropout included."""
    flow.manual_seed(0)
    model = models.parallelize(TRAINED[case](), spec)
    step = Step(model, micro_batches, stage)
    random = np.random.default_rng(0)
    last = 0 if case == "t5" or case.startswith(("gpt2", "bert", "qwen3")) else -1  # where targets are read: tied heads
    found = []
    for _ in range(steps):
        batch = [random.integers(0, 61, (8, length)), random.integers(0, 61, (8, length))]
        if case == "bert":
            batch.append(random.integers(0, 2, 8))
        if case == "bert_classes":
            batch[1] = random.integers(0, 3, 8)
        found.append(step(spec.place(batch[0]), *[spec.place(x, last) for x in batch[1:]]).mean().item())
    return found, model, step
