"""Vision transformers: ViT, DeiT and their variants by name."""

from .config import ViTConfig as ViTConfig
from .model import ViT as ViT
from .weights import load_timm as load_timm
from .zoo import ImageViT as ImageViT
from .zoo import ImageViTConfig as ImageViTConfig
