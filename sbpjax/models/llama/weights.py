"""Weight names of Llama in Hugging Face's files."""

from __future__ import annotations

from sbpjax.models.weights import Weights

from .config import LlamaConfig
from .model import Llama

WEIGHTS = Weights(
    config=LlamaConfig,
    architectures=dict.fromkeys(
        ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"), Llama
    ),
    names={
        "embedding": "model.embed_tokens",
        "blocks.*.attention_norm": "model.layers.*.input_layernorm",
        "blocks.*.attention.q": "model.layers.*.self_attn.q_proj",
        "blocks.*.attention.k": "model.layers.*.self_attn.k_proj",
        "blocks.*.attention.v": "model.layers.*.self_attn.v_proj",
        "blocks.*.attention.out": "model.layers.*.self_attn.o_proj",
        "blocks.*.attention.q_norm": "model.layers.*.self_attn.q_norm",
        "blocks.*.attention.k_norm": "model.layers.*.self_attn.k_norm",
        "blocks.*.mlp_norm": "model.layers.*.post_attention_layernorm",
        "blocks.*.mlp.gate": "model.layers.*.mlp.gate_proj",
        "blocks.*.mlp.up": "model.layers.*.mlp.up_proj",
        "blocks.*.mlp.down": "model.layers.*.mlp.down_proj",
        "norm": "model.norm",
        "head": "lm_head",
    },
    skipped=(r".*rotary_emb\.inv_freq", r"lm_head\.weight"),
    copies={"lm_head.weight": "model.embed_tokens.weight"},
)
