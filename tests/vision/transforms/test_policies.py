"""Policies: torchvision's pixels for every change, magnitudes, what is chosen how often."""

import collections

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.vision import transforms as T
from sbpjax.vision.transforms import policies
from tests.vision.transforms.pictures import agrees, image_of, values
from tests.vision.transforms.record import CHANGES, MOVES


@pytest.mark.parametrize("kind", ["pil", "array", "uint8", "float"])
def test_pixels_of_torchvision(kind):
    for name, magnitude in CHANGES.items():
        for mode in ("nearest", "bilinear")[: 2 if name in MOVES else 1]:
            found = policies.change_image(image_of(kind), name, magnitude, mode)
            agrees(kind, name, (mode,), found, exact=kind in ("pil", "array"))


def test_magnitudes():
    assert policies.magnitudes("Posterize", 10, 1, 1)[0].tolist() == [8, 8, 7, 7, 6, 6, 5, 5, 4, 4]
    assert policies.magnitudes("TranslateX", 2, 100, 331)[0].tolist() == [0, 150]
    assert policies.magnitudes("TranslateY", 2, 100, 331, "wide")[0].tolist() == [0, 32]
    assert policies.magnitudes("TranslateY", 2, 99, 331, "augmix")[0].tolist() == [0, 33]
    assert policies.magnitudes("Rotate", 2, 1, 1, "wide")[0].tolist() == [0, 135]
    assert policies.magnitudes("Equalize", 10, 1, 1) is None


def test_what_is_chosen():
    drawn = [T.RandAugment(3).draw(T.generator(0, i), 20, 30) for i in range(400)]
    names = collections.Counter(name for one in drawn for name, _ in one)
    assert len(names) == 14 and min(names.values()) > 50
    turns = [magnitude for one in drawn for name, magnitude in one if name == "Rotate"]
    assert {round(turn, 6) for turn in turns} == {9.0, -9.0} and 0.3 < np.mean(np.array(turns) > 0) < 0.7
    pairs = [T.AutoAugment("cifar10").draw(T.generator(0, i), 20, 30) for i in range(400)]
    assert {len(one) for one in pairs} == {0, 1, 2}
    assert all(len(pairs) == 25 for pairs in policies.POLICIES.values())
    assert {len(T.TrivialAugmentWide().draw(T.generator(0, i), 20, 30)) for i in range(9)} == {1}


@pytest.mark.parametrize("kind", ["pil", "array", "uint8", "float"])
def test_mixtures_of_chains(kind):
    mixed = T.AugMix()
    found = mixed(image_of(kind), number=4)
    assert type(found) is type(image_of(kind)) and values(found).shape == values(image_of(kind)).shape
    own, weights, chains = mixed.draw(T.generator(0, 4), 21, 30)
    assert abs(own + sum(weights) - 1) < 1e-9 and len(chains) == 3 and {len(chain) for chain in chains} <= {1, 2, 3}
    parts = [image_of(kind)]
    for chain in chains:
        part = image_of(kind)
        for name, magnitude in chain:
            part = policies.change_image(part, name, magnitude, "bilinear")
        parts.append(part)
    by_hand = sum(w * values(one).astype(np.float64) for w, one in zip([own, *weights], parts, strict=True))
    assert np.abs(values(found) - by_hand).max() <= (1.0 if kind != "float" else 1e-5)


def test_one_channel_and_wrong_names():
    grey = np.zeros((8, 8, 1), np.uint8)
    for name, magnitude in CHANGES.items():
        assert policies.change_image(grey, name, magnitude).shape == (8, 8, 1)
        assert policies.change_image(flow.tensor(grey.transpose(2, 0, 1)), name, magnitude).shape == (1, 8, 8)
    with pytest.raises(DataError, match="fix:  'Rotate'"):
        policies.change_image(grey, "rotat", 3.0)
