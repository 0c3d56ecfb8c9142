"""Semantic segmentation (a class for every pixel): `DeepLabV3` and `FCN`.

model = DeepLabV3(num_classes=21)
logits = model(images)                       # (B, 21, H, W)
loss = model.loss(images, masks)             # masks (B, H, W), 255 where nothing is known
"""

from .base import SegmentationModel as SegmentationModel
from .deeplabv3 import DeepLabV3 as DeepLabV3
from .fcn import FCN as FCN
