"""Changes of colours: torchvision's values for every kind of image, factors per image, wrong calls."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError, DataTypeError
from sbpjax.vision.transforms import colour, tensors
from tests.vision.transforms.pictures import agrees, image_of, values
from tests.vision.transforms.record import CASES

NAMES = [name for name in CASES if hasattr(colour, name)]


@pytest.mark.parametrize("kind", ["pil", "array", "uint8", "float"])
def test_values_of_torchvision(kind):
    assert len(NAMES) == 10
    for name in NAMES:
        for args in CASES[name]:
            agrees(kind, name, args, getattr(colour, name)(image_of(kind), *args), exact=kind in ("pil", "array"))


def test_a_factor_for_each_image():
    one = image_of("float")
    batch = flow.stack([one, one])
    for name in ("brightness", "contrast", "saturation", "sharpness", "hue"):
        factors = np.array([0.1, 0.4], np.float32)
        found = getattr(tensors, name)(batch, flow.tensor(factors).reshape(2, 1, 1, 1)).numpy()
        for i, factor in enumerate(factors):
            np.testing.assert_allclose(found[i], getattr(colour, name)(one, float(factor)).numpy(), atol=1e-5)


def test_grey_pictures():
    for kind in ("pil", "array", "uint8", "float"):
        three = values(colour.grey(image_of(kind), 3))
        axis = 0 if kind in ("uint8", "float") else 2
        assert three.shape[axis] == 3 and (np.ptp(three, axis) == 0).all()
    assert colour.grey(image_of("array")).shape == (21, 30, 1)
    grey = colour.grey(image_of("pil"))
    assert grey.mode == "L" and colour.hue(grey, 0.2) is grey and colour.saturation(grey, 0.5).mode == "L"


def test_wrong_calls():
    with pytest.raises(DataError, match="a factor is 0 or more"):
        colour.brightness(image_of("array"), -1)
    with pytest.raises(DataError, match="a shift is from -0.5 to 0.5"):
        colour.hue(image_of("pil"), 0.6)
    with pytest.raises(DataTypeError, match="colours of an array are uint8, of one or three channels"):
        colour.contrast(image_of("array").astype(np.float32), 0.5)
    with pytest.raises(DataTypeError, match="image.convert"):
        colour.invert(image_of("pil").convert("RGBA"))
    with pytest.raises(DataError, match="colours are of one or three channels"):
        colour.saturation(flow.zeros(4, 8, 8), 0.5)
