"""ViT: an image as a sequence of patches, and blocks of attention over them; DeiT and others of its kind by name."""

from .config import ViTConfig as ViTConfig
from .model import ViT as ViT
from .weights import load_timm as load_timm
from .zoo import ImageViT as ImageViT
from .zoo import ImageViTConfig as ImageViTConfig
