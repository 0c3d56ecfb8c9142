"""The configuration of GPT-2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sbpjax.models.config import Config
from sbpjax.models.layers.mlp import ACTIVATIONS
from sbpjax.utils.host import explain_arguments


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class GPT2Config(Config):
    """The size of a model; the names are those of ``config.json``.

    Attributes:
        model_type: ``"gpt2"``.
        vocab_size: number of token kinds.
        n_positions: the longest input.
        n_embd: size of a token's vector.
        n_layer: number of blocks.
        n_head: attention heads.
        n_inner: hidden units of the MLP; by default 4 `n_embd`.
        activation_function: a name of `layers.ACTIVATIONS`.
        layer_norm_epsilon: epsilon of the norms.
        initializer_range: standard deviation of fresh weights; of what adds to the stream smaller with depth.
        embd_pdrop: probability of a zero behind the embeddings, in training.
        resid_pdrop: in what adds to the stream.
        attn_pdrop: among the attention weights.

    Raises:
        ConfigError: the fields contradict each other.

    Example:
        >>> flow.models.gpt2.GPT2Config(n_embd=64, n_head=4).hidden
        256
    """

    model_type: str = "gpt2"
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    embd_pdrop: float = 0.1
    resid_pdrop: float = 0.1
    attn_pdrop: float = 0.1

    OTHER: ClassVar = (
        "n_ctx",
        "reorder_and_upcast_attn",
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
    )
    ONLY: ClassVar = {
        "add_cross_attention": (False,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "scale_attn_weights": (True,),
        "tie_word_embeddings": (True,),
    }
    REQUIRED: ClassVar = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model_type != "gpt2":
            self.refuse(f"model_type={self.model_type!r}", "it is gpt2", "model_type='gpt2'")
        if self.activation_function not in ACTIVATIONS:
            rule = f"it is one of {', '.join(ACTIVATIONS)}"
            self.refuse(f"activation_function={self.activation_function!r}", rule, "activation_function='gelu_new'")
        if self.n_embd % self.n_head:
            rule = "n_embd is a multiple of n_head"
            self.refuse(f"n_embd={self.n_embd}, n_head={self.n_head}", rule, f"n_embd={self.n_head * 64}")

    @property
    def hidden(self) -> int:
        """Hidden units of the MLP."""
        return 4 * self.n_embd if self.n_inner is None else self.n_inner
