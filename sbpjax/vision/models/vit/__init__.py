"""ViT: an image as a sequence of patches, and blocks of attention over them."""

from .config import ViTConfig as ViTConfig
from .model import ViT as ViT
from .weights import load_timm as load_timm
