"""Transforms of values: jitter, the way to tensors, dtypes, normalising, erasing."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.vision import transforms as T
from sbpjax.vision.transforms import colour
from tests.vision.transforms.pictures import image_of, values


def test_jitter_draws_factors_and_an_order():
    jitter = T.ColorJitter(brightness=0.4, contrast=(0.2, 0.3), hue=0.1)
    drawn = [jitter.draw(T.generator(0, i), 1, 1) for i in range(200)]
    assert len({tuple(name for name, _ in one) for one in drawn}) == 24
    factors = {name: [dict(one)[name] for one in drawn] for name in ("brightness", "contrast", "saturation", "hue")}
    assert 0.6 <= min(factors["brightness"]) < 0.65 and 1.35 < max(factors["brightness"]) <= 1.4
    assert 0.2 <= min(factors["contrast"]) and max(factors["contrast"]) <= 0.3 and set(factors["saturation"]) == {1.0}
    by_hand = image_of("pil")
    for name, factor in drawn[0]:
        by_hand = getattr(colour, name)(by_hand, factor)
    assert (np.asarray(by_hand) == np.asarray(jitter.transform_image(image_of("pil"), drawn[0]))).all()


@pytest.mark.parametrize("kind", ["pil", "array", "uint8", "float"])
def test_to_tensor_and_normalise(kind):
    found = T.Compose([T.ToTensor(), T.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])])(image_of(kind))
    want = (image_of("float").numpy().transpose(1, 2, 0) - np.float32([0.5, 0.4, 0.3])) / np.float32([0.2, 0.3, 0.4])
    assert isinstance(found, flow.Tensor) and found.dtype == flow.float32
    np.testing.assert_allclose(found.numpy(), want.transpose(2, 0, 1), atol=1e-6)
    array = T.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])(image_of("array").astype(np.float32) / 255)
    np.testing.assert_allclose(array, want, atol=1e-6)
    with pytest.raises(DataError, match="it has 2 channels"):
        T.Normalize([0.5, 0.4], [1, 1])(image_of("float"))


def test_dtypes():
    back = T.Compose([T.ToDtype("float32"), T.ToDtype("uint8")])
    for kind in ("array", "uint8", "pil"):
        assert (values(back(image_of(kind))) == values(image_of(kind))).all()
    unscaled = T.ToDtype("float32", scale=False)(image_of("uint8"))
    assert unscaled.dtype == flow.float32 and unscaled.max().item() > 200
    assert T.ToDtype(flow.bfloat16)(image_of("float")).dtype == flow.bfloat16


@pytest.mark.parametrize("kind", ["pil", "array", "float"])
def test_erasing(kind):
    erase = T.RandomErasing(p=1.0, scale=(0.1, 0.2))
    found = values(erase(image_of(kind), number=0))
    plane = found[0] if kind == "float" else found[..., 0]
    top, left, height, width = erase.draw(T.generator(0, 0), *plane.shape)
    assert not plane[top : top + height, left : left + width].any()
    assert (plane == 0).sum() < 1.5 * height * width and 0.08 < height * width / plane.size < 0.22
    assert T.RandomErasing(p=0).draw(T.generator(0, 0), 8, 8) is None
    assert (values(image_of(kind)) != found).any()


def test_grey():
    assert np.asarray(T.RandomGrayscale(1.0)(image_of("pil"))).std(-1).max() == 0
    assert (np.asarray(T.RandomGrayscale(0.0)(image_of("pil"))) == image_of("array")).all()
