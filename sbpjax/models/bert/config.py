"""The configuration of BERT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sbpjax.models.config import LabelledConfig
from sbpjax.models.layers.mlp import ACTIVATIONS
from sbpjax.utils.host import explain_arguments


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class BertConfig(LabelledConfig):
    """The size of a model; the names are those of ``config.json``.

    Attributes:
        model_type: ``"bert"``.
        vocab_size: number of token kinds.
        hidden_size: size of a token's vector.
        num_hidden_layers: number of blocks.
        num_attention_heads: attention heads.
        intermediate_size: hidden units of the MLP.
        hidden_act: a name of `layers.ACTIVATIONS`.
        max_position_embeddings: the longest input.
        type_vocab_size: number of kinds of segments.
        initializer_range: standard deviation of fresh weights.
        layer_norm_eps: epsilon of the norms.
        hidden_dropout_prob: probability of a zero in what adds to the stream, in training.
        attention_probs_dropout_prob: among the attention weights.
        classifier_dropout: before the classifier; by default as `hidden_dropout_prob`.
        num_labels: classes of a classification; in the file the length of ``id2label``.

    Raises:
        ConfigError: the fields contradict each other.

    Example:
        >>> flow.models.bert.BertConfig(hidden_size=64, num_attention_heads=4, num_labels=3).num_labels
        3
    """

    model_type: str = "bert"
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    classifier_dropout: float | None = None

    ONLY: ClassVar = {
        "add_cross_attention": (False,),
        "is_decoder": (False,),
        "position_embedding_type": ("absolute",),
        "tie_word_embeddings": (True,),
    }
    REQUIRED: ClassVar = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model_type != "bert":
            self.refuse(f"model_type={self.model_type!r}", "it is bert", "model_type='bert'")
        if self.hidden_act not in ACTIVATIONS:
            self.refuse(
                f"hidden_act={self.hidden_act!r}", f"it is one of {', '.join(ACTIVATIONS)}", "hidden_act='gelu'"
            )
        if self.hidden_size % self.num_attention_heads:
            rule = "hidden_size is a multiple of num_attention_heads"
            seen = f"hidden_size={self.hidden_size}, {self.num_attention_heads} heads"
            self.refuse(seen, rule, f"hidden_size={self.num_attention_heads * 64}")
