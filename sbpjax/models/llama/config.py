"""The configuration of Llama, Mistral, Qwen2 and Qwen3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sbpjax.models.config import Config
from sbpjax.models.layers.mlp import ACTIVATIONS
from sbpjax.models.layers.rotary import SCALINGS
from sbpjax.utils.host import explain_arguments


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class LlamaConfig(Config):
    """The size of a model and the variants of its layers; the names are those of ``config.json``.

    Attributes:
        model_type: ``"llama"``, ``"mistral"``, ``"qwen2"`` (queries, keys and values have a bias) or ``"qwen3"``
            (queries and keys are normalised).
        vocab_size: number of token kinds.
        hidden_size: size of a token's vector.
        intermediate_size: hidden units of the MLP.
        num_hidden_layers: number of blocks.
        num_attention_heads: heads of queries.
        num_key_value_heads: heads of keys and values; those of queries by default.
        head_dim: size of a head; by default `hidden_size` / `num_attention_heads`.
        hidden_act: a name of `layers.ACTIVATIONS`.
        max_position_embeddings: the longest input in training; nothing is made of that size.
        initializer_range: standard deviation of fresh weights.
        rms_norm_eps: epsilon of the norms.
        rope_theta: base of the rotary embeddings.
        rope_scaling: a ``rope_type`` of `layers.rotary.SCALINGS` with its keys; None for none.
        attention_bias: whether all four matrices of the attention have a bias.
        mlp_bias: whether those of the MLP have one.
        attention_dropout: probability of a zero among attention weights in training.
        tie_word_embeddings: whether the output matrix is the embedding.
        sliding_window: how many keys a query reads, itself included; None for all.
        layer_types: of each block ``"full_attention"`` or ``"sliding_attention"``; by default all alike.

    Raises:
        ConfigError: the fields contradict each other.

    Example:
        >>> flow.models.llama.LlamaConfig(hidden_size=64, num_attention_heads=4).head_size
        16
    """

    model_type: str = "llama"
    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    initializer_range: float = 0.02
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: Mapping[str, Any] | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    attention_dropout: float = 0.0
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    layer_types: tuple[str, ...] | None = None

    FAMILIES: ClassVar = ("llama", "mistral", "qwen2", "qwen3")
    OTHER: ClassVar = ("use_sliding_window", "max_window_layers")
    REQUIRED: ClassVar = (
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model_type not in self.FAMILIES:
            rule, fix = f"it is one of {', '.join(self.FAMILIES)}", f"model_type={self.FAMILIES[0]!r}"
            self.refuse(f"model_type={self.model_type!r}", rule, fix)
        if self.hidden_act not in ACTIVATIONS:
            self.refuse(
                f"hidden_act={self.hidden_act!r}", f"it is one of {', '.join(ACTIVATIONS)}", "hidden_act='silu'"
            )
        heads, kv_heads = self.num_attention_heads, self.kv_heads
        if heads % kv_heads:
            rule = "each head of keys serves as many heads of queries: num_attention_heads % num_key_value_heads = 0"
            fix = f"num_key_value_heads={next(n for n in range(kv_heads, 0, -1) if heads % n == 0)}"
            self.refuse(f"{heads} heads, {kv_heads} of keys", rule, fix)
        if self.head_dim is None and self.hidden_size % heads:
            rule = "without head_dim, hidden_size is a multiple of num_attention_heads"
            self.refuse(f"hidden_size={self.hidden_size}, {heads} heads", rule, "give head_dim")
        if self.head_size % 2:
            rule = "rotary embeddings turn pairs, so that a head has an even size"
            self.refuse(f"heads of {self.head_size}", rule, f"head_dim={self.head_size + 1}")
        kinds = {"full_attention", "sliding_attention"}
        if self.layer_types is not None and (
            len(self.layer_types) != self.num_hidden_layers or not kinds.issuperset(self.layer_types)
        ):
            rule = f"one of {' or '.join(sorted(kinds))} for each of {self.num_hidden_layers} blocks"
            self.refuse(f"layer_types={self.layer_types}", rule, "layer_types=None, for blocks that are alike")
        self._check_scaling()

    def _check_scaling(self) -> None:
        if self.rope_scaling is None:
            return
        kind, keys = str(self.rope_scaling.get("rope_type")), set(self.rope_scaling) - {"rope_type"}
        if kind not in SCALINGS:
            rule = f"scalings that are built: {', '.join(SCALINGS)}"
            self.refuse(f"rope_scaling with rope_type={kind!r}", rule, "rope_scaling=None, for contexts as in training")
        for name, value in self.rope_scaling.items():
            one = value if isinstance(value, (list, tuple)) else [value]
            if name != "rope_type" and not all(type(x) in (int, float, bool) and 0 <= x < 1e30 for x in one):
                rule = "the values of a scaling are numbers from 0 to 1e30"
                self.refuse(f"rope_scaling[{name!r}]={value!r:.80}", rule, "as config.json was written")
        needs, may = SCALINGS[kind]
        if not keys.issuperset(needs) or not keys.issubset({*needs, *may}):
            rule = f"{kind} needs {', '.join(needs) or 'nothing'} and may have {', '.join(may) or 'nothing else'}"
            self.refuse(f"rope_scaling={dict(self.rope_scaling)}", rule, "rope_scaling={'rope_type': …, these keys}")

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.num_attention_heads if self.num_key_value_heads is None else self.num_key_value_heads

    @property
    def head_size(self) -> int:
        """Size of a head."""
        return self.hidden_size // self.num_attention_heads if self.head_dim is None else self.head_dim

    @property
    def qkv_bias(self) -> bool:
        """Whether queries, keys and values have a bias."""
        return self.attention_bias or self.model_type == "qwen2"

    @property
    def qk_norm(self) -> bool:
        """Whether queries and keys are normalised."""
        return self.model_type == "qwen3"

    def window(self, block: int) -> int | None:
        """Return how many keys a query reads in a block; None for all."""
        kind = "sliding_attention" if self.layer_types is None else self.layer_types[block]
        return self.sliding_window if kind == "sliding_attention" else None

    @classmethod
    def rename(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with `rope_theta` and `rope_scaling`, which newer files have as one table."""
        table = values.pop("rope_parameters", None)
        if table is not None:
            table = dict(table)
            values["rope_theta"] = table.pop("rope_theta", 10000.0)
            values["rope_scaling"] = table
        scaling = values.get("rope_scaling")
        if scaling is not None:
            scaling = dict(scaling)
            kind = scaling.pop("type", None)  # as older files call it
            scaling.setdefault("rope_type", kind)
            longest = values.get("max_position_embeddings", cls.max_position_embeddings)
            if scaling["rope_type"] == "yarn":
                scaling.setdefault("original_max_position_embeddings", longest)
            values["rope_scaling"] = None if scaling["rope_type"] in (None, "default") else scaling
        if values.get("model_type") in ("qwen2", "qwen3") and not values.get("use_sliding_window", False):
            values["sliding_window"] = None  # the field is there, and means nothing
        return values

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of ``config.json``; those that no block reads are left out."""
        found = super().to_dict()
        found["num_key_value_heads"], found["head_dim"] = self.kv_heads, self.head_size
        if self.model_type != "llama":
            del found["mlp_bias"]
        if self.model_type in ("mistral", "qwen2"):
            del found["attention_bias"]
        for name in ("layer_types", "sliding_window", "rope_scaling"):
            if found[name] is None:
                del found[name]
        return found
