"""Pictures: places in a grid, files, boxes and their texts, wrong shapes."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.vision import pictures

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def test_places_in_a_grid():
    images = flow.arange(5.0).reshape(5, 1, 1, 1).expand(5, 1, 4, 3) + 1
    grid = pictures.make_grid(images, nrow=3, padding=1).numpy()
    assert grid.shape == (3, 11, 13)
    for i in range(5):
        top, left = 1 + i // 3 * 5, 1 + i % 3 * 4
        assert (grid[:, top : top + 4, left : left + 3] == i + 1).all()
    assert (grid == 0).sum() == 3 * (11 * 13 - 5 * 12)
    spread = pictures.make_grid([images[0], images[4]], normalize=True, padding=0).numpy()
    assert spread.min() == 0 and spread.max() == 1 and spread.shape == (3, 4, 6)


def test_files(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (3, 6, 5), np.uint8)
    for values in (flow.tensor(image), flow.tensor(image.astype(np.float32) / 255)[None]):
        pictures.save_image(values, tmp_path / "one.png")
        assert (np.asarray(Image.open(tmp_path / "one.png")).transpose(2, 0, 1) == image).all()


def test_boxes():
    black = flow.zeros(1, 20, 40)
    found = pictures.draw_bounding_boxes(
        black, flow.tensor([[2.0, 3, 12, 15], [20, 1, 38, 18]]), ["cat", "dog"], width=2
    )
    assert found.dtype == flow.uint8 and found.shape == (3, 20, 40) and black.sum().item() == 0
    red = found[0].numpy() > 0
    assert red[3:5, 2:13].all() and red[3:16, 2:4].all() and not red[5:14, 20:22].any()


def test_wrong_calls():
    with pytest.raises(DataError, match=r"images are \(B, C, H, W\)"):
        pictures.make_grid(flow.zeros(4, 4))
    with pytest.raises(DataError, match=r"box \[5.0, 5.0, 2.0, 9.0\][\s\S]*box_convert"):
        pictures.draw_bounding_boxes(flow.zeros(3, 8, 8), [[1, 1, 2, 2], [5, 5, 2, 9]])
    with pytest.raises(DataError, match="there is one of labels for each box"):
        pictures.draw_bounding_boxes(flow.zeros(3, 8, 8), [[1, 1, 2, 2]], ["a", "b"])
    with pytest.raises(DataError, match=r"an image is \(C, H, W\)"):
        pictures.draw_bounding_boxes(flow.zeros(1, 3, 8, 8), [])
