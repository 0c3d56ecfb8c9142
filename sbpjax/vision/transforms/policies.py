"""Augmentation policies: `AutoAugment`, `RandAugment`, `TrivialAugmentWide`, `AugMix`.

All of them choose among the same changes, each with a magnitude from a range of its own:

    shear x, shear y, translate x, translate y, rotate, brightness, colour, contrast, sharpness,
    posterize, solarize, autocontrast, equalize, invert

The published tables of AutoAugment, one per dataset that they were found on, have a line for each pair of changes: of
each its name, the probability that it is done, and its magnitude in steps from 0 to 9. Images alone are changed, not
boxes or masks: policies are for classification.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbpjax.errors import DataError, nearest

from . import colour, geometry
from .base import Transform
from .kinds import is_pil, is_tensor, pillow, size_of


def _table(text: str) -> list[list[tuple[str, float, int]]]:
    """Return the pairs of a policy: a line each, ``change share step, change share step``."""
    pairs = []
    for line in text.strip().splitlines():
        parts = [one.split() for one in line.split(",")]
        pairs.append([(name, float(share), int(step)) for name, share, step in parts])
    return pairs


POLICIES = {
    "imagenet": _table("""
        Posterize .4 8, Rotate .6 9
        Solarize .6 5, AutoContrast .6 0
        Equalize .8 0, Equalize .6 0
        Posterize .6 7, Posterize .6 6
        Equalize .4 0, Solarize .2 4
        Equalize .4 0, Rotate .8 8
        Solarize .6 3, Equalize .6 0
        Posterize .8 5, Equalize 1 0
        Rotate .2 3, Solarize .6 8
        Equalize .6 0, Posterize .4 6
        Rotate .8 8, Color .4 0
        Rotate .4 9, Equalize .6 0
        Equalize 0 0, Equalize .8 0
        Invert .6 0, Equalize 1 0
        Color .6 4, Contrast 1 8
        Rotate .8 8, Color 1 2
        Color .8 8, Solarize .8 7
        Sharpness .4 7, Invert .6 0
        ShearX .6 5, Equalize 1 0
        Color .4 0, Equalize .6 0
        Equalize .4 0, Solarize .2 4
        Solarize .6 5, AutoContrast .6 0
        Invert .6 0, Equalize 1 0
        Color .6 4, Contrast 1 8
        Equalize .8 0, Equalize .6 0
    """),
    "cifar10": _table("""
        Invert .1 0, Contrast .2 6
        Rotate .7 2, TranslateX .3 9
        Sharpness .8 1, Sharpness .9 3
        ShearY .5 8, TranslateY .7 9
        AutoContrast .5 0, Equalize .9 0
        ShearY .2 7, Posterize .3 7
        Color .4 3, Brightness .6 7
        Sharpness .3 9, Brightness .7 9
        Equalize .6 0, Equalize .5 0
        Contrast .6 7, Sharpness .6 5
        Color .7 7, TranslateX .5 8
        Equalize .3 0, AutoContrast .4 0
        TranslateY .4 3, Sharpness .2 6
        Brightness .9 6, Color .2 8
        Solarize .5 2, Invert 0 0
        Equalize .2 0, AutoContrast .6 0
        Equalize .2 0, Equalize .6 0
        Color .9 9, Equalize .6 0
        AutoContrast .8 0, Solarize .2 8
        Brightness .1 3, Color .7 0
        Solarize .4 5, AutoContrast .9 0
        TranslateY .9 9, TranslateY .7 9
        AutoContrast .9 0, Solarize .8 3
        Equalize .8 0, Invert .1 0
        TranslateY .7 9, AutoContrast .9 0
    """),
    "svhn": _table("""
        ShearX .9 4, Invert .2 0
        ShearY .9 8, Invert .7 0
        Equalize .6 0, Solarize .6 6
        Invert .9 0, Equalize .6 0
        Equalize .6 0, Rotate .9 3
        ShearX .9 4, AutoContrast .8 0
        ShearY .9 8, Invert .4 0
        ShearY .9 5, Solarize .2 6
        Invert .9 0, AutoContrast .8 0
        Equalize .6 0, Rotate .9 3
        ShearX .9 4, Solarize .3 3
        ShearY .8 8, Invert .7 0
        Equalize .9 0, TranslateY .6 6
        Invert .9 0, Equalize .6 0
        Contrast .3 3, Rotate .8 4
        Invert .8 0, TranslateY 0 2
        ShearY .7 6, Solarize .4 8
        Invert .6 0, Rotate .8 4
        ShearY .3 7, TranslateX .9 3
        ShearX .1 6, Invert .6 0
        Solarize .7 2, TranslateY .6 7
        ShearY .8 4, Invert .8 0
        ShearX .7 9, TranslateY .8 3
        ShearY .8 5, AutoContrast .7 0
        ShearX .7 2, Invert .1 0
    """),
}


# change: the largest magnitude, and whether it may be negative; of translations a share of the side
_USUAL: dict[str, tuple[float, bool]] = {
    "ShearX": (0.3, True),
    "ShearY": (0.3, True),
    "TranslateX": (150 / 331, True),
    "TranslateY": (150 / 331, True),
    "Rotate": (30.0, True),
    "Brightness": (0.9, True),
    "Color": (0.9, True),
    "Contrast": (0.9, True),
    "Sharpness": (0.9, True),
}
_WIDE = dict.fromkeys(_USUAL, (0.99, True)) | {"Rotate": (135.0, True)}
_SHIFTS_WIDE = 32.0  # pixels, of TrivialAugment
_PLAIN = ("AutoContrast", "Equalize")
_COLOURS = {"Brightness": "brightness", "Color": "saturation", "Contrast": "contrast", "Sharpness": "sharpness"}


def change_image(image: Any, name: str, magnitude: float, interpolation: str = "nearest", fill: float = 0) -> Any:
    """Return an image with one change of the policies.

    Args:
        image: of any kind.
        name: which change.
        magnitude: degrees of ``Rotate``, pixels of translations, what is added to the factor 1 of colours, bits of
            ``Posterize``, the threshold of ``Solarize`` as a share of white.
        interpolation: of moves.
        fill: of pixels where nothing was.

    Raises:
        DataError: there is no such change.
    """
    height, width = size_of(image)
    if name in ("ShearX", "ShearY"):
        shear = float(np.degrees(np.arctan(magnitude)))
        pair = (shear, 0.0) if name == "ShearX" else (0.0, shear)
        matrix = geometry.affine(height, width, shear=pair, centre=(0.0, 0.0))
        return geometry.move_image(image, matrix, interpolation, fill)
    if name in ("TranslateX", "TranslateY"):
        shift = (float(int(magnitude)), 0.0) if name == "TranslateX" else (0.0, float(int(magnitude)))
        return geometry.move_image(image, geometry.affine(height, width, translate=shift), interpolation, fill)
    if name == "Rotate":  # counter-clockwise
        return geometry.move_image(image, geometry.affine(height, width, angle=-magnitude), interpolation, fill)
    if name in _COLOURS:
        return getattr(colour, _COLOURS[name])(image, 1.0 + magnitude)
    if name == "Posterize":
        return colour.posterize(image, int(magnitude))
    if name == "Solarize":
        return colour.solarize(image, magnitude)
    plain = {"AutoContrast": colour.autocontrast, "Equalize": colour.equalize, "Invert": colour.invert}
    if name == "Identity":
        return image
    if name not in plain:
        known = (*_USUAL, "Posterize", "Solarize", *plain)
        fix = f"{nearest(name, known) or 'Rotate'!r}"
        raise DataError(f"changed(image, {name!r})", name, f"a change is one of {', '.join(known)}", fix)
    return plain[name](image)


def magnitudes(name: str, bins: int, height: int, width: int, of: str = "usual") -> tuple[np.ndarray, bool] | None:
    """Return the magnitudes of a change in steps, and whether they may be negative; None if it has none.

    Args:
        name: the change.
        bins: how many steps.
        height: of the image.
        width: of the image.
        of: ``"usual"``, or the ranges of ``"wide"`` TrivialAugment or of ``"augmix"``.
    """
    wide = of == "wide"
    if name == "Posterize":
        bits = (4 if of == "augmix" else 8) - np.arange(bins) / ((bins - 1) / (6 if wide else 4))
        return np.round(bits).astype(int), False
    if name == "Solarize":
        return np.linspace(1.0, 0.0, bins), False
    if name not in _USUAL:
        return None
    largest, signed = (_WIDE if wide else _USUAL)[name]
    if name in ("TranslateX", "TranslateY"):
        share = 1 / 3 if of == "augmix" else largest
        largest = _SHIFTS_WIDE if wide else share * (width if name == "TranslateX" else height)
    return np.linspace(0.0, largest, bins), signed


class _Policy(Transform):
    """Base: `draw` gives a list of changes with their magnitudes."""

    draws = True

    def __init__(self, interpolation: str, fill: float) -> None:
        self.interpolation, self.fill = interpolation, fill

    def transform_image(self, image: Any, drawn: list[tuple[str, float]]) -> Any:
        """Return the image, changed."""
        for name, magnitude in drawn:
            image = change_image(image, name, magnitude, self.interpolation, self.fill)
        return image


def _draw_change(random: np.random.Generator, name: str, steps: Any, at: int) -> tuple[str, float]:
    if steps is None:
        return name, 0.0
    values, signed = steps
    magnitude = float(values[at])
    return name, -magnitude if signed and random.random() < 0.5 else magnitude


class RandAugment(_Policy):
    """A few random transforms of the same strength.

    Args:
        num_ops: how many.
        magnitude: their strength, below `num_magnitude_bins`.
        num_magnitude_bins: into how many steps strengths are divided.
        interpolation: of moves, ``"nearest"`` or ``"bilinear"``.
        fill: the value of pixels where nothing was.

    Raises:
        DataError: the strength is out of its range.

    Source: Cubuk et al., "RandAugment", 2019.

    Example:
        >>> RandAugment(magnitude=5)(np.zeros((8, 8, 3), np.uint8), number=0).shape
        (8, 8, 3)
    """

    _names = ("Identity", *_USUAL, "Posterize", "Solarize", *_PLAIN)

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: float = 0,
    ) -> None:
        super().__init__(interpolation, fill)
        if num_ops < 0 or not 0 <= magnitude < num_magnitude_bins:
            seen = f"num_ops={num_ops}, magnitude={magnitude}, num_magnitude_bins={num_magnitude_bins}"
            rule = "0 or more changes of a strength from 0 to num_magnitude_bins - 1"
            raise DataError("RandAugment(...)", seen, rule, "RandAugment(2, 9)")
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def draw(self, random: np.random.Generator, height: int, width: int) -> list[tuple[str, float]]:
        """Return the changes."""
        names = [self._names[i] for i in random.integers(len(self._names), size=self.num_ops)]
        steps = [magnitudes(name, self.num_magnitude_bins, height, width) for name in names]
        return [_draw_change(random, name, step, self.magnitude) for name, step in zip(names, steps, strict=True)]


class TrivialAugmentWide(_Policy):
    """One random transform of random strength, from wide ranges.

    Args:
        num_magnitude_bins: into how many steps strengths are divided.
        interpolation: of moves.
        fill: the value of pixels where nothing was.

    Source: Müller and Hutter, "TrivialAugment", 2021.
    """

    def __init__(self, num_magnitude_bins: int = 31, interpolation: str = "nearest", fill: float = 0) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def draw(self, random: np.random.Generator, height: int, width: int) -> list[tuple[str, float]]:
        """Return the change."""
        name = RandAugment._names[int(random.integers(len(RandAugment._names)))]
        steps = magnitudes(name, self.num_magnitude_bins, height, width, "wide")
        return [_draw_change(random, name, steps, int(random.integers(self.num_magnitude_bins)))]


class AutoAugment(_Policy):
    """A random one of 25 pairs of transforms that were found by search.

    Args:
        policy: ``"imagenet"``, ``"cifar10"`` or ``"svhn"``: for which images they were found.
        interpolation: of moves.
        fill: the value of pixels where nothing was.

    Raises:
        DataError: there is no such policy.

    Source: Cubuk et al., "AutoAugment", 2018, tables 7 to 9.
    """

    def __init__(self, policy: str = "imagenet", interpolation: str = "nearest", fill: float = 0) -> None:
        super().__init__(interpolation, fill)
        if policy not in POLICIES:
            rule = f"a policy is one of {', '.join(POLICIES)}"
            fix = repr(nearest(policy, POLICIES) or "imagenet")
            raise DataError(f"AutoAugment({policy!r})", repr(policy), rule, fix)
        self.policy = policy

    def draw(self, random: np.random.Generator, height: int, width: int) -> list[tuple[str, float]]:
        """Return the changes."""
        pairs = POLICIES[self.policy]
        found = []
        for name, share, at in pairs[int(random.integers(len(pairs)))]:
            if random.random() < share:
                found.append(_draw_change(random, name, magnitudes(name, 10, height, width), at))
        return found


class AugMix(_Policy):
    """Mixtures of an image with a few chains of transforms.

    Args:
        severity: the strongest change, 1 to 10.
        mixture_width: how many chains.
        chain_depth: how many changes each; -1 for one to three.
        alpha: how even mixtures are: of the Dirichlet and Beta distributions.
        all_ops: colours too, which tests of robustness use.
        interpolation: of moves.
        fill: the value of pixels where nothing was.

    Raises:
        DataError: the severity is out of its range.

    Source: Hendrycks et al., "AugMix", 2019.
    """

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: str = "bilinear",
        fill: float = 0,
    ) -> None:
        super().__init__(interpolation, fill)
        if not 1 <= severity <= 10:
            raise DataError(f"AugMix(severity={severity})", f"{severity}", "a severity is from 1 to 10", "severity=3")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def draw(self, random: np.random.Generator, height: int, width: int) -> Any:
        """Return the weights of the image and of the chains, and the chains."""
        left_out = () if self.all_ops else tuple(_COLOURS)
        names = [name for name in RandAugment._names if name not in ("Identity", *left_out)]
        own, others = random.dirichlet([self.alpha, self.alpha])
        weights = random.dirichlet([self.alpha] * self.mixture_width) * others
        chains = []
        for _ in range(self.mixture_width):
            depth = self.chain_depth if self.chain_depth > 0 else int(random.integers(1, 4))
            chain = []
            for name in [names[i] for i in random.integers(len(names), size=depth)]:
                at = int(random.integers(self.severity))
                chain.append(_draw_change(random, name, magnitudes(name, 10, height, width, "augmix"), at))
            chains.append(chain)
        return float(own), [float(weight) for weight in weights], chains

    def transform_image(self, image: Any, drawn: Any) -> Any:
        """Return the mixture, in the kind and the dtype of the image."""
        own, weights, chains = drawn
        chained = [_Policy.transform_image(self, image, chain) for chain in chains]
        if is_tensor(image):
            wide = image if image.is_floating_point() else image.float()
            mixed = own * wide + sum(weight * one for weight, one in zip(weights, chained, strict=True))
            return mixed.to(image.dtype)
        arrays = [np.asarray(one, np.float32) for one in (image, *chained)]
        mixed = sum(weight * one for weight, one in zip((own, *weights), arrays, strict=True))
        dtype = np.uint8 if is_pil(image) else image.dtype
        values = mixed.astype(dtype)
        if not is_pil(image):
            return values
        return pillow().fromarray(values)
