"""The configuration of T5 and T5 v1.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sbpjax.models.config import Config
from sbpjax.models.layers.mlp import ACTIVATIONS
from sbpjax.utils.host import explain_arguments


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class T5Config(Config):
    """The size of a model; the names are those of ``config.json``.

    Attributes:
        model_type: ``"t5"``.
        vocab_size: number of token kinds.
        d_model: size of a token's vector.
        d_kv: size of a head.
        d_ff: hidden units of the MLP.
        num_layers: blocks of the encoder.
        num_decoder_layers: blocks of the decoder; by default as many.
        num_heads: attention heads.
        relative_attention_num_buckets: kinds of distances between positions.
        relative_attention_max_distance: from which on all are of one kind.
        dropout_rate: probability of a zero, in training, in what blocks get, add and give.
        layer_norm_epsilon: epsilon of the norms.
        initializer_factor: factor of fresh weights.
        feed_forward_proj: a name of `layers.ACTIVATIONS`, behind ``"gated-"`` for a gated MLP, as v1.1 has it.
        tie_word_embeddings: whether the output matrix is the embedding; not in v1.1.
        scale_decoder_outputs: whether the logits are divided by sqrt(`d_model`); by default where the matrix is tied.
        pad_token_id: what stands in the decoder for a target that does not count.
        decoder_start_token_id: the token before the first target.

    Raises:
        ConfigError: the fields contradict each other.

    Example:
        >>> flow.models.t5.T5Config(feed_forward_proj="gated-gelu").activation
        'gelu_new'
    """

    model_type: str = "t5"
    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    layer_norm_epsilon: float = 1e-6
    initializer_factor: float = 1.0
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None
    pad_token_id: int = 0
    decoder_start_token_id: int = 0

    OTHER: ClassVar = ("classifier_dropout", "dense_act_fn", "is_gated_act", "n_positions", "output_past")
    ONLY: ClassVar = {"is_encoder_decoder": (True,), "is_decoder": (False,)}
    REQUIRED: ClassVar = ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model_type != "t5":
            self.refuse(f"model_type={self.model_type!r}", "it is t5", "model_type='t5'")
        if self.feed_forward_proj.removeprefix("gated-") not in ACTIVATIONS:
            rule = f"it is one of {', '.join(ACTIVATIONS)}, or one after 'gated-'"
            self.refuse(f"feed_forward_proj={self.feed_forward_proj!r}", rule, "feed_forward_proj='relu'")
        buckets, reach = self.relative_attention_num_buckets, self.relative_attention_max_distance
        if buckets % 4 or reach <= buckets // 2:
            seen = f"relative_attention_num_buckets={buckets}, relative_attention_max_distance={reach}"
            rule = "half of the buckets are for each direction, and half of those for distances that they do not reach"
            self.refuse(seen, rule, "relative_attention_num_buckets=32, relative_attention_max_distance=128")

    @property
    def decoder_layers(self) -> int:
        """Blocks of the decoder."""
        return self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers

    @property
    def is_gated(self) -> bool:
        """Whether the MLP is gated."""
        return self.feed_forward_proj.startswith("gated-")

    @property
    def activation(self) -> str:
        """The name of the MLP's activation; that of ``"gated-gelu"`` is the approximation by tanh."""
        name = self.feed_forward_proj.removeprefix("gated-")
        return "gelu_new" if self.feed_forward_proj == "gated-gelu" else name

    @property
    def is_scaled(self) -> bool:
        """Whether the logits are divided by sqrt(`d_model`)."""
        return self.tie_word_embeddings if self.scale_decoder_outputs is None else self.scale_decoder_outputs

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of ``config.json``."""
        found = super().to_dict() | {"is_encoder_decoder": True, "num_decoder_layers": self.decoder_layers}
        return found | {"scale_decoder_outputs": self.is_scaled}
