"""The configuration of Mixtral."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sbpjax.models.llama.config import LlamaConfig
from sbpjax.utils.host import explain_arguments


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class MixtralConfig(LlamaConfig):
    """The size of a model and its mixture of experts; the names are those of ``config.json``.

    What is not named here is as in `LlamaConfig`, without biases.

    Attributes:
        model_type: ``"mixtral"``.
        num_local_experts: experts of each block.
        num_experts_per_tok: through how many of them a token goes.
        output_router_logits: whether the loss has the term for equal use of the experts.
        router_aux_loss_coef: the factor of that term.
        router_z_loss_coef: factor of the router's mean squared log Σ exp(logits) in the loss; of this project.
        capacity_factor: rows of each expert for a sequence, as a multiple of its even share; None for as many as are
            wanted, as in `transformers`; of this project.
        router_jitter_noise: must be 0.

    Raises:
        ConfigError: the fields contradict each other.

    Example:
        >>> flow.models.mixtral.MixtralConfig(num_local_experts=4).num_experts_per_tok
        2
    """

    model_type: str = "mixtral"
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    num_local_experts: int = 8
    num_experts_per_tok: int = 2
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    router_z_loss_coef: float = 0.0
    capacity_factor: float | None = None

    FAMILIES: ClassVar = ("mixtral",)
    ONLY: ClassVar = {"router_jitter_noise": (0, 0.0)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.num_experts_per_tok <= self.num_local_experts:
            seen = f"num_experts_per_tok={self.num_experts_per_tok}, num_local_experts={self.num_local_experts}"
            self.refuse(seen, "a token goes through at least one expert and at most all", "num_experts_per_tok=1")
        if self.capacity_factor is not None and self.capacity_factor <= 0:
            rule = "an expert has rows for its share of a sequence, times a factor above 0"
            self.refuse(
                f"capacity_factor={self.capacity_factor}", rule, "capacity_factor=None, for all that are wanted"
            )
        for name in ("attention_bias", "mlp_bias"):
            if getattr(self, name):
                self.refuse(f"{name}=True", "Mixtral's matrices have no biases", f"{name}=False")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of ``config.json``; those that no block reads are left out."""
        found = super().to_dict()
        found["head_dim"] = self.head_dim
        for name in ("attention_bias", "mlp_bias", "router_z_loss_coef", "capacity_factor"):
            if not found.get(name, True):
                del found[name]
        return found
