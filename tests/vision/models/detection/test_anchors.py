"""Anchors: how many, where, and how large."""

import numpy as np

from sbpjax.vision.models.detection import anchors


def test_ssds_boxes():
    boxes = anchors.default_boxes(300)
    assert boxes.shape == (8732, 4) and boxes.dtype == np.float32
    np.testing.assert_allclose(boxes[0], [4 - 10.5, 4 - 10.5, 4 + 10.5, 4 + 10.5], rtol=1e-6)  # 0.07 of 300
    assert (boxes[-4:, :2] < 150).all() and (boxes[-4:, 2:] > 150).all()  # the coarsest map has one place


def test_grids():
    assert anchors.areas_by_level()[:2] == [(32, 40, 50), (64, 80, 101)]
    first, second = anchors.grid_anchors((64, 96), [(8, 12), (4, 6)], anchors.areas_by_level((32, 64)))
    assert first.shape == (8 * 12 * 9, 4) and second.shape == (4 * 6 * 9, 4)
    sides = first[:9, 2:] - first[:9, :2]
    assert abs(sides.prod(1) ** 0.5 - np.tile([32, 40, 50], 3)).max() < 1.5
    assert (first[9:18] - first[:9] == [8, 0, 8, 0]).all() and (
        first[12 * 9 : 13 * 9] - first[:9] == [0, 8, 0, 8]
    ).all()
