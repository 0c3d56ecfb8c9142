"""Random numbers of transforms: a function of a seed and the sample's index.

So it depends neither on who makes the sample, nor when, nor beside which others: one worker or eight draw the same.

    >>> int(generator(0, 17).integers(100)) == int(generator(0, 17).integers(100))
    True
"""

from __future__ import annotations

import math

import numpy as np


def generator(seed: int, number: int) -> np.random.Generator:
    """Return the randomness of the sample of a number, 0 or more."""
    return np.random.default_rng((seed, number, 1))  # the 1 keeps it apart from the orders of epochs


def random_crop_box(
    height: int,
    width: int,
    random: np.random.Generator,
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
) -> tuple[int, int, int, int]:
    """Return a random part of an image: top, left, height, width.

    Args:
        height: of the image.
        width: of the image.
        random: the randomness of the sample.
        scale: the least and the largest share of the area.
        ratio: the least and the largest quotient of width by height, uniform in their logarithm.

    Returns:
        What fits of ten attempts; else the largest part in the middle that is in the range of `ratio`.
        Source: Szegedy et al., "Going deeper with convolutions", 2014, section 6.
    """
    for _ in range(10):
        area = height * width * random.uniform(*scale)
        sides = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * sides)), round(math.sqrt(area / sides))
        if 0 < w <= width and 0 < h <= height:
            left, top = int(random.integers(width - w + 1)), int(random.integers(height - h + 1))
            return top, left, h, w
    w = min(width, round(height * ratio[1]))
    h = min(height, round(width / ratio[0]))
    return (height - h) // 2, (width - w) // 2, h, w
