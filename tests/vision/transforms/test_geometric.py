"""Transforms that move pixels: sizes, ranges of what is drawn, where parts lie."""

import numpy as np

from sbpjax.vision import transforms as T
from tests.vision.transforms.pictures import image_of


def drawn(transform, height, width, count=300):
    return [transform.draw(T.generator(0, i), height, width) for i in range(count)]


def test_sizes_of_resize():
    sizes = [(T.Resize(10), (10, 14)), (T.Resize((5, 9)), (5, 9)), (T.Resize(10, max_size=12), (8, 12))]
    for transform, size in sizes:
        assert transform(image_of("array")).shape[:2] == size
    assert T.Resize(10)(image_of("array").transpose(1, 0, 2)).shape[:2] == (14, 10)


def test_the_middle():
    image = image_of("array")
    assert (T.CenterCrop((9, 10))(image) == image[6:15, 10:20]).all()
    padded = T.CenterCrop((25, 10))(image)
    assert (padded[2:23] == image[:, 10:20]).all() and not padded[:2].any() and not padded[23:].any()


def test_places_of_parts():
    places = drawn(T.RandomCrop(8, padding=2), 10, 20)
    assert {top for top, *_ in places} == set(range(-2, 5)) and {left for _, left, *_ in places} == set(range(-2, 15))
    assert T.RandomCrop(40, pad_if_needed=True)(image_of("array"), number=0).shape == (40, 40, 3)


def test_areas_and_proportions_of_parts():
    parts = np.array(drawn(T.RandomResizedCrop(8, scale=(0.2, 0.5)), 100, 150))
    top, left, height, width = parts.T
    share, ratio = height * width / 15000, width / height
    assert 0.19 < share.min() < 0.23 and 0.46 < share.max() < 0.51
    assert 0.74 < ratio.min() < 0.78 and 1.28 < ratio.max() < 1.35
    assert ((top >= 0) & (left >= 0) & (top + height <= 100) & (left + width <= 150)).all()
    narrow = drawn(T.RandomResizedCrop(8, scale=(0.9, 1.0)), 10, 200, 20)  # nothing so large fits into ten attempts
    assert set(narrow) == {(0, 93, 10, 13)}


def test_flips_and_turns():
    flips = drawn(T.RandomHorizontalFlip(0.3), 1, 1)
    assert 0.22 < np.mean(flips) < 0.38
    assert not any(drawn(T.RandomVerticalFlip(0), 1, 1)) and all(drawn(T.RandomVerticalFlip(1), 1, 1))
    turned = T.RandomRotation(30, fill=255)(np.zeros((20, 20), np.uint8), number=1)
    assert turned[0, 0] == 255 and turned[10, 10] == 0


def test_keypoints():
    points = np.array([[[4, 5, 2], [25, 5, 1], [0, 0, 0]]], np.float32)  # left eye, right eye, not annotated
    sample = {"image": image_of("array"), "keypoints": points}
    found = T.RandomHorizontalFlip(1.0, pairs=[(0, 1)])(sample)["keypoints"]
    assert found.tolist() == [[[5, 5, 1], [26, 5, 2], [0, 0, 0]]]
    assert T.CenterCrop((21, 24))(sample)["keypoints"].tolist() == [[[1, 5, 2], [22, 5, 1], [0, 0, 0]]]
    assert T.CenterCrop((21, 20))(sample)["keypoints"].tolist() == [[[0, 0, 0], [0, 0, 0], [0, 0, 0]]]
    assert T.Resize((42, 60))(sample)["keypoints"].tolist() == [[[8, 10, 2], [50, 10, 1], [0, 0, 0]]]
