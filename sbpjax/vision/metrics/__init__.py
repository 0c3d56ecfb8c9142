"""Metrics of detection and segmentation; those of classification are in `sbpjax.train.evaluation`."""

from .average_precision import AveragePrecision as AveragePrecision
from .mean_iou import MeanIoU as MeanIoU
