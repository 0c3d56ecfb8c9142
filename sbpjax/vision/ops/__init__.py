"""Detection ops: boxes, IoU, non-maximum suppression, region pooling, losses."""

from sbpjax.nn.functional import deform_conv2d as deform_conv2d

from .boxes import box_area as box_area
from .boxes import box_convert as box_convert
from .boxes import box_iou as box_iou
from .boxes import clip_boxes_to_image as clip_boxes_to_image
from .boxes import complete_box_iou as complete_box_iou
from .boxes import distance_box_iou as distance_box_iou
from .boxes import generalized_box_iou as generalized_box_iou
from .boxes import remove_small_boxes as remove_small_boxes
from .losses import complete_box_iou_loss as complete_box_iou_loss
from .losses import distance_box_iou_loss as distance_box_iou_loss
from .losses import generalized_box_iou_loss as generalized_box_iou_loss
from .losses import sigmoid_focal_loss as sigmoid_focal_loss
from .regions import roi_align as roi_align
from .regions import roi_pool as roi_pool
from .suppression import batched_nms as batched_nms
from .suppression import nms as nms
