"""Layers shared by model families. Shapes: B batch, T and S positions, D width, H heads, K key heads, C head size."""

from .attention import Attention as Attention
from .attention import KeyValues as KeyValues
from .attention import make_attention_mask as make_attention_mask
from .attention import put as put
from .lora import LoraLinear as LoraLinear
from .margin_softmax import MarginSoftmax as MarginSoftmax
from .margin_softmax import PartialMarginSoftmax as PartialMarginSoftmax
from .mlp import ACTIVATIONS as ACTIVATIONS
from .mlp import MLP as MLP
from .mlp import GatedMLP as GatedMLP
from .moe import MoE as MoE
from .moe import routing_loss as routing_loss
from .moe import routing_sums as routing_sums
from .relative import RelativeBias as RelativeBias
from .rotary import apply_rope as apply_rope
from .rotary import rope_cos_sin as rope_cos_sin
from .rotary import rope_frequencies as rope_frequencies
from .tokens import make_position_ids as make_position_ids
from .tokens import normal_weights as normal_weights
from .tokens import select_positions as select_positions
from .tokens import token_loss as token_loss
