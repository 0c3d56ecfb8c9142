"""Layers shared by model families. Shapes: B batch, T and S positions, D width, H heads, K key heads, C head size."""

from .attention import Attention as Attention
from .cache import KeyValues as KeyValues
from .cache import put as put
from .lora import LoraLinear as LoraLinear
from .margin_softmax import MarginSoftmax as MarginSoftmax
from .margin_softmax import PartialMarginSoftmax as PartialMarginSoftmax
from .masks import attention_mask as attention_mask
from .mlp import ACTIVATIONS as ACTIVATIONS
from .mlp import MLP as MLP
from .mlp import GatedMLP as GatedMLP
from .moe import MoE as MoE
from .moe import routing_loss as routing_loss
from .moe import routing_sums as routing_sums
from .relative import RelativeBias as RelativeBias
from .rotary import frequencies as frequencies
from .rotary import rotate as rotate
from .rotary import rotation as rotation
from .tokens import normal_weights as normal_weights
from .tokens import only_at as only_at
from .tokens import positions_of as positions_of
from .tokens import token_loss as token_loss
