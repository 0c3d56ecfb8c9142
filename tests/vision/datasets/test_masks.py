"""Masks of COCO's annotations: runs and letters as pycocotools reads them, polygons."""

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.vision.datasets import mask_of


def disc(height, width, y, x, radius):
    rows, columns = np.mgrid[:height, :width] + 0.5
    return (rows - y) ** 2 + (columns - x) ** 2 < radius**2


def runs(mask):
    flat = mask.T.reshape(-1).astype(int)
    changes = np.flatnonzero(np.diff(flat, prepend=1 - flat[0])).tolist() + [flat.size]
    return ([0] if flat[0] else []) + np.diff(changes).tolist()


def test_plain_runs():
    for mask in (disc(20, 30, 8, 12, 6), np.random.default_rng(0).random((9, 7)) < 0.4, np.ones((2, 3), bool)):
        assert (mask_of({"size": list(mask.shape), "counts": runs(mask)}, *mask.shape) == mask).all()


def test_letters_as_pycocotools_writes_them():
    coder = pytest.importorskip("pycocotools.mask", reason="pycocotools is not installed")
    for mask in (disc(200, 300, 80, 120, 60), np.random.default_rng(0).random((9, 7)) < 0.4, np.ones((2, 3), bool)):
        code = coder.encode(np.asfortranarray(mask.astype(np.uint8)))
        assert (mask_of(code, *mask.shape) == mask).all()
        assert (mask_of({**code, "counts": code["counts"].decode()}, *mask.shape) == mask).all()


def test_letters():
    by_pycocotools = {"size": [20, 30], "counts": "n34>4M2O0O2O000001N101N3L\\7"}
    assert (mask_of(by_pycocotools, 20, 30) == disc(20, 30, 8, 12, 6)).all()


def test_polygons_cover_the_pixels_whose_centre_is_inside():
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    circle = np.stack([12 + 6 * np.cos(angles), 8 + 6 * np.sin(angles)], 1).reshape(-1).tolist()
    assert (mask_of([circle], 20, 30) != disc(20, 30, 8, 12, 6)).sum() <= 4
    two = mask_of([[0, 0, 4, 0, 4, 4, 0, 4], [10, 10, 40, 10, 40, 15, 10, 15]], 20, 30)
    assert two[:4, :4].all() and two[10:15, 10:].all() and two.sum() == 16 + 100
    assert not mask_of([], 4, 4).any()


def test_wrong_sizes():
    with pytest.raises(DataError, match="runs are of all pixels of their image"):
        mask_of({"size": [4, 4], "counts": [3, 4]}, 4, 4)
