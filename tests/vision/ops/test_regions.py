"""`roi_align` and `roi_pool`: torchvision's values and gradients, lists of boxes, wrong calls."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import OpError, OpValueError
from sbpjax.vision import ops
from tests.vision.ops.facts import FACTS, GIVEN, TOLERANCE, agrees
from tests.vision.ops.record import REGIONS

ROIS = flow.tensor(GIVEN["rois"])


@pytest.mark.parametrize("scale, ratio, aligned", REGIONS)
def test_means_of_torchvision(scale, ratio, aligned):
    name = f"roi_align/{scale}/{ratio}/{aligned}"
    agrees(name, lambda x: ops.roi_align(x, ROIS, (3, 4), scale, ratio, aligned), "image")
    if ratio > 0:
        agrees(name, lambda x: ops.roi_align(x, ROIS, (3, 4), scale, ratio, aligned), "image", inside=True)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_maxima_of_torchvision(scale):
    for inside in (False, True):
        agrees(f"roi_pool/{scale}", lambda x: ops.roi_pool(x, ROIS, (3, 4), scale), "image", inside=inside)


def test_a_list_of_boxes_per_image():
    image, rois = flow.tensor(GIVEN["image"]), GIVEN["rois"]
    order = np.argsort(rois[:, 0], kind="stable")
    found = ops.roi_pool(image, [flow.tensor(rois[rois[:, 0] == i, 1:]) for i in (0, 1)], (3, 4))
    np.testing.assert_allclose(found.numpy(), FACTS["roi_pool/1.0"][order], **TOLERANCE)


def test_wrong_calls():
    image = flow.tensor(GIVEN["image"])
    with pytest.raises(OpError, match="put the image's number in front"):
        ops.roi_align(image, ROIS[:, 1:], 2)
    with pytest.raises(OpError, match="one tensor per image"):
        ops.roi_pool(image, [ROIS[:, 1:]], 2)
    with pytest.raises(OpValueError, match="there is one bin at least"):
        ops.roi_pool(image, ROIS, 0)
