"""The picture in the four forms of images, and comparison with what `record.py` recorded of torchvision."""

import numpy as np

import sbpjax as flow
from tests.vision.transforms.record import DATA, key, picture

with np.load(DATA) as file:
    FACTS = dict(file)
ONE_STEP = 1  # of 255: where a value is rounded
FLOATS = 1e-5


def image_of(kind):
    from PIL import Image

    if kind == "pil":
        return Image.fromarray(picture())
    if kind == "array":
        return picture()
    channels_first = picture().transpose(2, 0, 1)
    return flow.tensor(channels_first if kind == "uint8" else channels_first.astype(np.float32) / 255)


def values(image):
    return np.asarray(image.numpy() if isinstance(image, flow.Tensor) else image)


def agrees(kind, name, args, found, *, exact=False, few=0.0):
    """Compare; `few` is the share of values that may be others, where a borderline pixel falls to the other side."""
    want = FACTS[key("pil" if kind == "array" else kind, name, args)].astype(np.float64)
    got = values(found).astype(np.float64)
    assert got.shape == want.shape
    allowed = 0 if exact else FLOATS if kind == "float" else ONE_STEP
    assert (np.abs(got - want) > allowed).mean() <= few, np.abs(got - want).max()
