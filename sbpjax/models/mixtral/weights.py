"""Names of Mixtral's parameters in Hugging Face's files."""

from __future__ import annotations

from sbpjax.models.weights import Part, Weights

from .config import MixtralConfig
from .model import Mixtral

_LAYER = "model.layers.*"
_EXPERT = f"{_LAYER}.block_sparse_moe.experts.#"

WEIGHTS = Weights(
    config=MixtralConfig,
    architectures={"MixtralForCausalLM": Mixtral},
    names={
        "embedding": "model.embed_tokens",
        "blocks.*.attention_norm": f"{_LAYER}.input_layernorm",
        "blocks.*.attention.q": f"{_LAYER}.self_attn.q_proj",
        "blocks.*.attention.k": f"{_LAYER}.self_attn.k_proj",
        "blocks.*.attention.v": f"{_LAYER}.self_attn.v_proj",
        "blocks.*.attention.out": f"{_LAYER}.self_attn.o_proj",
        "blocks.*.moe_norm": f"{_LAYER}.post_attention_layernorm",
        "blocks.*.moe.router": f"{_LAYER}.block_sparse_moe.gate",
        "blocks.*.moe.gate": Part(f"{_EXPERT}.w1.weight", transposed=True),
        "blocks.*.moe.up": Part(f"{_EXPERT}.w3.weight", transposed=True),
        "blocks.*.moe.down": Part(f"{_EXPERT}.w2.weight", transposed=True),
        "norm": "model.norm",
        "head": "lm_head",
    },
    skipped=(r".*rotary_emb\.inv_freq", r"lm_head\.weight"),  # the latter where it is the embedding
    # As `transformers` 5 has them in memory, and in files if it is told so.
    older=((r"\.mlp\.", ".block_sparse_moe."),),
    fused={
        r"(.*\.experts)\.gate_up_proj": (r"\1.#.w1.weight", r"\1.#.w3.weight"),
        r"(.*\.experts)\.down_proj": (r"\1.#.w2.weight",),
    },
)
