"""The configuration of ViT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sbpjax.models.config import LabelledConfig
from sbpjax.models.layers.mlp import ACTIVATIONS


@dataclass(frozen=True, kw_only=True)
class ViTConfig(LabelledConfig):
    """The size of a model; the names are those of ``config.json``.

    Attributes:
        model_type: ``"vit"``.
        image_size: height and width of images.
        patch_size: height and width of a patch.
        num_channels: of images.
        hidden_size: size of a patch's vector.
        num_hidden_layers: number of blocks.
        num_attention_heads: attention heads.
        intermediate_size: hidden units of the MLP.
        hidden_act: a name of `layers.ACTIVATIONS`.
        qkv_bias: whether queries, keys and values have a bias.
        initializer_range: standard deviation of fresh weights.
        layer_norm_eps: epsilon of the norms; 1e-6 in the models of timm.
        hidden_dropout_prob: probability of a zero in what adds to the stream, in training.
        attention_probs_dropout_prob: among the attention weights.
        num_labels: classes; in the file the length of ``id2label``.

    Raises:
        ConfigError: the fields contradict each other.

    Example:
        >>> ViTConfig(image_size=32, patch_size=8).patches
        16
    """

    model_type: str = "vit"
    image_size: int = 224
    patch_size: int = 16
    num_channels: int = 3
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    qkv_bias: bool = True
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0

    OTHER: ClassVar = ("encoder_stride", "pooler_act", "pooler_output_size")
    REQUIRED: ClassVar = ("image_size", "patch_size", "hidden_size", "num_hidden_layers", "num_attention_heads")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model_type != "vit":
            self.refuse(f"model_type={self.model_type!r}", "it is vit", "model_type='vit'")
        if self.hidden_act not in ACTIVATIONS:
            rule = f"it is one of {', '.join(ACTIVATIONS)}"
            self.refuse(f"hidden_act={self.hidden_act!r}", rule, "hidden_act='gelu'")
        if self.hidden_size % self.num_attention_heads:
            seen = f"hidden_size={self.hidden_size}, {self.num_attention_heads} heads"
            rule = "hidden_size is a multiple of num_attention_heads"
            self.refuse(seen, rule, f"hidden_size={self.num_attention_heads * 64}")
        if self.image_size % self.patch_size:
            seen = f"image_size={self.image_size}, patch_size={self.patch_size}"
            self.refuse(seen, "an image is cut into whole patches", f"image_size={14 * self.patch_size}")

    @property
    def patches(self) -> int:
        """How many patches an image has."""
        return (self.image_size // self.patch_size) ** 2
