"""Sizes of a decoder-only transformer, which is all that a step's time and memory depend on.

    >>> transformer("llama-70b").parameters / 1e9
    70.553706496

A model is dense, or a mixture whose tokens each use some of the experts. Counts leave out norms and biases, which are
below 0.01 % of a large model. FLOPs are those of the model: products with parameters three times (forward, and two
backward), attention of causal pairs alone, no recomputation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbpjax.errors import ConfigError, nearest


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """The sizes of a transformer.

    Attributes:
        name: shown in reports.
        layers: blocks.
        width: size of a token's vector.
        heads: heads of queries.
        kv_heads: heads of keys and values.
        head_size: size of a head.
        hidden: hidden units of the gated MLP, of one expert in a mixture.
        vocab: kinds of tokens.
        experts: experts of a block; 0 for a dense model.
        active: experts that a token uses.
        tied: whether the output matrix is the embedding.
    """

    name: str = "model"
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int = 128
    hidden: int
    vocab: int
    experts: int = 0
    active: int = 0
    tied: bool = False

    @property
    def query_width(self) -> int:
        """Width of queries, and of the attention's result."""
        return self.heads * self.head_size

    @property
    def kv_width(self) -> int:
        """Width of keys, and of values."""
        return self.kv_heads * self.head_size

    @property
    def attention_parameters(self) -> int:
        """Parameters of one block's attention."""
        return self.width * 2 * (self.query_width + self.kv_width)

    @property
    def mlp_parameters(self) -> int:
        """Parameters of one MLP, or of one expert: gate, up and down."""
        return 3 * self.width * self.hidden

    @property
    def used_mlps(self) -> int:
        """MLPs that a token passes in one block."""
        return self.active if self.experts else 1

    @property
    def vocab_parameters(self) -> int:
        """Parameters of one table of the vocabulary."""
        return self.vocab * self.width

    @property
    def parameters(self) -> int:
        """All parameters, of norms excepted."""
        block = self.attention_parameters + (self.experts or 1) * self.mlp_parameters
        return self.layers * block + (1 if self.tied else 2) * self.vocab_parameters

    def product_flops(self) -> float:
        """Return the FLOPs of products with parameters per token, forward and backward."""
        block = self.attention_parameters + self.used_mlps * self.mlp_parameters
        return 6.0 * (self.layers * block + self.vocab_parameters)

    def attention_flops(self, length: int) -> float:
        """Return the FLOPs of causal attention per token of a sequence of this length, forward and backward."""
        return 6.0 * self.layers * length * self.query_width

    def flops(self, length: int) -> float:
        """Return the model FLOPs per token of a training step."""
        return self.product_flops() + self.attention_flops(length)


def _llama(name: str, layers: int, width: int, hidden: int, heads: int, vocab: int = 128256, kv_heads: int = 8):
    sizes = {"layers": layers, "width": width, "hidden": hidden, "heads": heads, "kv_heads": kv_heads}
    return Transformer(name=name, vocab=vocab, **sizes)


MODELS = {
    m.name: m
    for m in (
        _llama("llama-8b", 32, 4096, 14336, 32),
        _llama("llama-70b", 80, 8192, 28672, 64),
        _llama("llama-405b", 126, 16384, 53248, 128),
        _llama("llama2-70b", 80, 8192, 28672, 64, vocab=32000),
        Transformer(
            name="mixtral-8x7b", layers=32, width=4096, heads=32, kv_heads=8, hidden=14336, vocab=32000, experts=8,
            active=2,
        ),
        Transformer(
            name="moe-1t", layers=61, width=7168, heads=64, kv_heads=8, hidden=2048, vocab=163840, experts=384,
            active=8,
        ),
    )
}  # fmt: skip


def transformer(name: str | Mapping[str, Any]) -> Transformer:
    """Return the sizes of a model.

    Args:
        name: one of `MODELS`, the path of a ``config.json`` of Hugging Face, or the fields of one.

    Raises:
        ConfigError: there is no such model or file, or the file lacks a size.

    Example:
        >>> transformer("llama-405b").layers
        126
    """
    if not isinstance(name, str):
        return from_config(name, str(name.get("model_type", "model")))
    if name in MODELS:
        return MODELS[name]
    operation = f"sizes of the model {name!r}"
    if not name.endswith(".json"):
        rule = f"models are {', '.join(MODELS)}, and the path of a config.json"
        fix = f'"{nearest(name, MODELS) or next(iter(MODELS))}"'
        raise ConfigError(operation, repr(name), rule, fix)
    try:
        config = json.loads(Path(name).read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(operation, str(error), "the file is readable JSON", "check the path") from error
    return from_config(config, name)


def from_config(config: Mapping[str, Any], name: str = "model") -> Transformer:
    """Return the sizes that a configuration of Llama or Mixtral has, by the names of ``config.json``."""
    needed = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size")
    lacking = [key for key in needed if not config.get(key)]
    if lacking:
        kind = config.get("model_type")
        seen = f"{f'model_type {kind!r}, ' if kind else ''}no {', '.join(lacking)}"
        rule = f"plan reads models built like Llama or Mixtral, not GPT-2, BERT or T5: they have {', '.join(needed)}"
        fix = f"a config.json with these fields, or one of {', '.join(MODELS)}"
        raise ConfigError(f"sizes of {name}", seen, rule, fix)
    heads = config["num_attention_heads"]
    experts = config.get("num_local_experts") or config.get("num_experts") or 0
    return Transformer(
        name=name,
        layers=config["num_hidden_layers"],
        width=config["hidden_size"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_size=config.get("head_dim") or config["hidden_size"] // heads,
        hidden=(config.get("moe_intermediate_size") or config["intermediate_size"])
        if experts
        else config["intermediate_size"],
        vocab=config["vocab_size"],
        experts=experts,
        active=config.get("num_experts_per_tok") or min(experts, 2),
        tied=bool(config.get("tie_word_embeddings")),
    )
