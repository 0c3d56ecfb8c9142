"""Weight names of Mixtral in Hugging Face's files."""

from __future__ import annotations

from sbpjax.models.llama.weights import WEIGHTS as LLAMA
from sbpjax.models.weights import Part, Weights

from .config import MixtralConfig
from .model import Mixtral

_LAYER = "model.layers.*"
_EXPERT = f"{_LAYER}.block_sparse_moe.experts.#"

WEIGHTS = Weights(
    config=MixtralConfig,
    architectures={"MixtralForCausalLM": Mixtral},
    names={
        **{ours: theirs for ours, theirs in LLAMA.names.items() if "mlp" not in ours},
        "blocks.*.moe_norm": f"{_LAYER}.post_attention_layernorm",
        "blocks.*.moe.router": f"{_LAYER}.block_sparse_moe.gate",
        "blocks.*.moe.gate": Part(f"{_EXPERT}.w1.weight", transposed=True),
        "blocks.*.moe.up": Part(f"{_EXPERT}.w3.weight", transposed=True),
        "blocks.*.moe.down": Part(f"{_EXPERT}.w2.weight", transposed=True),
    },
    skipped=LLAMA.skipped,
    # As `transformers` 5 has them in memory, and in files by an option.
    older=((r"\.mlp\.", ".block_sparse_moe."),),
    fused={
        r"(.*\.experts)\.gate_up_proj": (r"\1.#.w1.weight", r"\1.#.w3.weight"),
        r"(.*\.experts)\.down_proj": (r"\1.#.w2.weight",),
    },
)
