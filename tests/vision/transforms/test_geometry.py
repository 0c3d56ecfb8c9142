"""Moves of images: torchvision's pixels, for every kind of image; boxes and masks that follow them."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.vision.transforms import geometry
from tests.vision.transforms.pictures import agrees, image_of
from tests.vision.transforms.record import CASES, HEIGHT, WIDTH

KINDS = ("pil", "array", "uint8", "float")


@pytest.mark.parametrize("kind", KINDS)
def test_pixels_of_torchvision(kind):
    modes = {"resize": "bilinear", "resize_bicubic": "bicubic", "resize_nearest": "nearest"}
    for name, mode in modes.items():
        for args in CASES[name]:
            found = geometry.resize_image(image_of(kind), *args, mode)
            agrees(kind, name, args, found, exact=kind in ("pil", "array"))
    for name in ("crop", "mirrored", "turned_over"):
        for args in CASES[name]:
            agrees(kind, name, args, getattr(geometry, name)(image_of(kind), *args), exact=True)


def test_arrays_of_floats_are_resized_as_tensors_are():
    whole = image_of("array")
    floats = whole.astype(np.float32) / 255
    small = geometry.resize_image(floats, 12, 17)
    assert small.dtype == np.float32
    agrees("float", "resize", (12, 17), flow.tensor(small.transpose(2, 0, 1)))
    turn = geometry.affine(HEIGHT, WIDTH, angle=20)
    assert (geometry.move_image(whole, turn) == np.round(255 * geometry.move_image(floats, turn))).all()


MOVES = {
    "part": (lambda x: geometry.crop(x, 3, 5, 12, 20), lambda m: geometry.cropped_masks(m, 3, 5, 12, 20),
             lambda b: geometry.shifted_boxes(b, 3, 5, 12, 20)),
    "mirror": (geometry.mirrored, lambda m: geometry.flipped_masks(m, -1), lambda b: geometry.mirrored_boxes(b, WIDTH)),
    "over": (geometry.turned_over, lambda m: geometry.flipped_masks(m, -2),
             lambda b: geometry.turned_over_boxes(b, HEIGHT)),
    "double": (lambda x: geometry.resize_image(x, 42, 60, "nearest"), lambda m: geometry.resized_masks(m, 42, 60),
               lambda b: geometry.scaled_boxes(b, 2.0, 2.0)),
    "turn": (lambda x: geometry.move_image(x, TURN), lambda m: geometry.moved_masks(m, TURN),
             lambda b: geometry.moved_boxes(b, TURN, HEIGHT, WIDTH)),
}  # fmt: skip
TURN = geometry.affine(HEIGHT, WIDTH, angle=90, centre=(15, 11))  # pixels come to lie on pixels


@pytest.mark.parametrize("name", MOVES)
def test_boxes_and_masks_follow(name):
    """A white rectangle: behind the move, its box is around what is white, and its mask is where it is white."""
    of_image, of_masks, of_boxes = MOVES[name]
    box = np.array([[8, 6, 14, 12]], np.float32)
    image = np.zeros((HEIGHT, WIDTH), np.uint8)
    image[6:12, 8:14] = 255
    found = of_image(image)
    rows, columns = np.nonzero(found)
    around = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    np.testing.assert_allclose(of_boxes(box)[0], around, atol=1e-5)
    assert (of_masks((image > 0)[None])[0] == (found > 0)).all()
    as_tensors = flow.tensor(box), flow.tensor((image > 0)[None])
    np.testing.assert_allclose(of_boxes(as_tensors[0]).numpy(), of_boxes(box), atol=1e-5)
    assert (of_masks(as_tensors[1]).numpy() == of_masks((image > 0)[None])).all()


def test_padding_and_parts_beyond_the_border():
    for kind in KINDS:
        image = geometry.crop(image_of(kind), -3, -4, HEIGHT + 5, WIDTH + 6)
        array = np.asarray(image.numpy().transpose(1, 2, 0) if isinstance(image, flow.Tensor) else image)
        assert array.shape == (HEIGHT + 5, WIDTH + 6, 3) and not array[:3].any() and not array[:, -2:].any()
    assert geometry.cropped_masks(np.ones((2, 4, 4)), -1, -1, 6, 6).sum() == 2 * 16
