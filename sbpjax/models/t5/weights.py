"""Weight names of T5 in Hugging Face's files."""

from __future__ import annotations

from sbpjax.models.weights import Weights

from .config import T5Config
from .model import T5


def rows(side: str, mlp: int) -> dict[str, str]:
    """Return the rows of the encoder's blocks or of the decoder's, in which the MLP has this number."""
    names = {"attention_norm": "layer.0.layer_norm", "mlp_norm": f"layer.{mlp}.layer_norm"}
    names |= {f"attention.{m}": f"layer.0.SelfAttention.{'o' if m == 'out' else m}" for m in ("q", "k", "v", "out")}
    if side == "decoder":
        names |= {"cross_norm": "layer.1.layer_norm"}
        names |= {f"cross.{m}": f"layer.1.EncDecAttention.{'o' if m == 'out' else m}" for m in ("q", "k", "v", "out")}
    inner = {"mlp.up": "wi", "mlp.down": "wo", "gated.gate": "wi_0", "gated.up": "wi_1", "gated.down": "wo"}
    names |= {ours: f"layer.{mlp}.DenseReluDense.{theirs}" for ours, theirs in inner.items()}
    return {f"{side}.blocks.*.{ours}": f"{side}.block.*.{theirs}" for ours, theirs in names.items()}


WEIGHTS = Weights(
    config=T5Config,
    architectures={"T5ForConditionalGeneration": T5},
    names={
        "embedding": "shared",
        **rows("encoder", 1),
        **rows("decoder", 2),
        "encoder.relative": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        "decoder.relative": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        "encoder.norm": "encoder.final_layer_norm",
        "decoder.norm": "decoder.final_layer_norm",
        "head": "lm_head",
    },
    skipped=(
        r"(encoder|decoder)\.embed_tokens\.weight",
        r"lm_head\.weight",
        r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",  # nothing reads it
    ),
    copies={
        "lm_head.weight": "shared.weight",
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
    },
)
