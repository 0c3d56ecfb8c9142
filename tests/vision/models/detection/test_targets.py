"""Anchor boxes, and training targets with padding."""

from __future__ import annotations

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.vision.models.detection import pad_targets
from sbpjax.vision.models.detection import targets as T


def test_ssds_boxes():
    boxes = T.default_boxes(300)
    assert boxes.shape == (8732, 4) and boxes.dtype == np.float32
    np.testing.assert_allclose(boxes[0], [4 - 10.5, 4 - 10.5, 4 + 10.5, 4 + 10.5], rtol=1e-6)  # 0.07 of 300
    assert (boxes[-4:, :2] < 150).all() and (boxes[-4:, 2:] > 150).all()  # the coarsest map has one place


def test_grids():
    assert T.areas_by_level()[:2] == [(32, 40, 50), (64, 80, 101)]
    first, second = T.grid_anchors((64, 96), [(8, 12), (4, 6)], T.areas_by_level((32, 64)))
    assert first.shape == (8 * 12 * 9, 4) and second.shape == (4 * 6 * 9, 4)
    sides = first[:9, 2:] - first[:9, :2]
    assert abs(sides.prod(1) ** 0.5 - np.tile([32, 40, 50], 3)).max() < 1.5
    assert (first[9:18] - first[:9] == [8, 0, 8, 0]).all() and (
        first[12 * 9 : 13 * 9] - first[:9] == [0, 8, 0, 8]
    ).all()


def test_codes_lead_back():
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 50, (2, 6, 2))
    boxes, anchors = np.concatenate([low, low + rng.uniform(2, 50, (2, 6, 2))], -1).astype(np.float32)
    codes = T.encode(flow.tensor(boxes), flow.tensor(anchors), (10.0, 10.0, 5.0, 5.0))
    back = T.decode(codes, flow.tensor(anchors), (10.0, 10.0, 5.0, 5.0))
    np.testing.assert_allclose(back.numpy(), boxes, rtol=1e-4, atol=1e-4)
    far = T.decode(flow.full((1, 4), 1e9), flow.tensor(anchors[:1]), (1.0, 1.0, 1.0, 1.0))
    assert np.isfinite(far.numpy()).all()


def test_matches():
    overlap = flow.tensor([[[0.6, 0.45, 0.1, 0.2], [0.1, 0.3, 0.3, 0.0], [-1.0, -1.0, -1.0, -1.0]]])
    number, kind = T.match(overlap, 0.4, 0.5, best_too=False)
    assert number.tolist() == [[0, 0, 1, 0]] and kind.tolist() == [[1, -1, 0, 0]]
    number, kind = T.match(overlap, 0.4, 0.5, best_too=True)  # box 1 has two best anchors; the first belongs to box 0
    assert number.tolist() == [[0, 0, 1, 0]] and kind.tolist() == [[1, 1, 1, 0]]
    number, kind = T.match_each(overlap, 0.5)
    assert number.tolist() == [[0, 1, 1, 0]] and kind.tolist() == [[1, 1, 0, 0]]
    nothing = flow.full((1, 2, 4), -1.0)
    for _, kind in (T.match(nothing, 0.4, 0.5, best_too=True), T.match_each(nothing, 0.5)):
        assert kind.tolist() == [[0, 0, 0, 0]]


def test_padding():
    boxes, labels = pad_targets([{"boxes": [[0, 0, 4, 4]], "labels": [7]}, {"boxes": [], "labels": []}], 2)
    assert boxes.shape == (2, 2, 4) and labels.tolist() == [[7, -1], [-1, -1]]
    with pytest.raises(DataError, match="fix:  size=3"):
        pad_targets([{"boxes": np.ones((3, 4)), "labels": [1] * 3}], 2)
    with pytest.raises(DataError, match="SanitizeBoxes"):
        pad_targets([{"boxes": [[2, 2, 2, 5]], "labels": [1]}], 2)
