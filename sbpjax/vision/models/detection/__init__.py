"""Object detectors with static shapes: loss and prediction of a batch are one compiled program each.

model = SSD300(num_classes=21)
boxes, labels = pad_targets(samples, size=50)       # (B, 50, 4), (B, 50)
losses = model.loss(images, boxes, labels)          # {"classification": …, "bbox_regression": …}
found = model.detect(images)                        # {"boxes", "scores", "labels", "count"}
"""

from .faster_rcnn import FasterRCNN as FasterRCNN
from .retinanet import RetinaNet as RetinaNet
from .ssd import SSD300 as SSD300
from .targets import pad_targets as pad_targets
