"""Handwritten digits of scikit-learn, as images of any size."""

from __future__ import annotations

import numpy as np

from sbpjax.train.data import ArrayImages

KINDS = ("train", "held_out")


def pixels_and_labels(size: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return all 1,797 digits, `(N, size, size)` uint8, and which they are, `(N,)`.

    Args:
        size: height and width; scikit-learn's images have 8 × 8 points.
    """
    from PIL import Image
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = np.rint(found.images * (255 / 16)).astype(np.uint8)
    if size != 8:
        larger = [Image.fromarray(one).resize((size, size), Image.Resampling.BICUBIC) for one in pixels]
        pixels = np.stack([np.asarray(one) for one in larger])
    return pixels, found.target


def digits(part: str, size: int = 8, samples: int | None = None, margin: int = 0) -> ArrayImages:
    """Return digits as samples ``{"images": (1, size, size), "labels": 0 to 9}``.

    Args:
        part: ``"train"``, or ``"held_out"``: every fifth.
        size: height and width.
        samples: how many a run takes, over as many epochs as needed; one epoch if not given.
        margin: in training, by how many points at most an image is moved.
    """
    pixels, labels = pixels_and_labels(size)
    chosen = (np.arange(len(labels)) % 5 == 4) == (KINDS.index(part) == 1)
    options = {"augment": True, "mirror": False, "margin": margin} if margin else {}
    return ArrayImages(pixels[chosen], labels[chosen], samples=samples, **options)
