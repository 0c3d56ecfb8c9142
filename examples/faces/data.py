"""Generated faces: each person is a smooth pattern, each image has another light, position and noise."""

from __future__ import annotations

import numpy as np

SIZE = 16


def faces(people: int, images: int, world: int = 0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return images `(people · images, SIZE, SIZE)` uint8 and their people, `(people · images,)`.

    Args:
        people: how many.
        images: of each.
        world: the seed of the people: those of two worlds are strangers.
        seed: of the images.
    """
    persons, chance = np.random.default_rng((world, 0)), np.random.default_rng((seed, 1))
    margin = 1
    wide = SIZE + 2 * margin
    # A mean of neighbours, three times over, makes noise smooth.
    patterns = persons.standard_normal((people, wide, wide))
    for _ in range(3):
        patterns = sum(np.roll(patterns, shift, axis) for axis in (1, 2) for shift in (-1, 0, 1)) / 6
    patterns /= patterns.std((1, 2), keepdims=True)
    who = np.repeat(np.arange(people), images)
    place = chance.integers(0, 2 * margin + 1, (len(who), 2))
    slope = np.linspace(-1, 1, SIZE)
    found = np.empty((len(who), SIZE, SIZE))
    for i, (person, (top, left)) in enumerate(zip(who, place, strict=True)):
        light = chance.standard_normal(2) * 0.5
        found[i] = patterns[person, top : top + SIZE, left : left + SIZE]
        found[i] += light[0] * slope[:, None] + light[1] * slope[None]
    found += chance.standard_normal(found.shape) * 0.3
    return np.clip(128 + 40 * found, 0, 255).astype(np.uint8), who


def pairs(who: np.ndarray, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of images `(2 · count, 2)`, half of them of one person, and a mask of that half.

    Args:
        who: the person on each image.
        count: how many pairs of each kind.
        seed: of the choice.
    """
    chance = np.random.default_rng((seed, 2))
    found: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    while min(map(len, found.values())) < count:
        a, b = (int(i) for i in chance.integers(0, len(who), 2))
        if chance.random() < 0.5:  # two images of one person are rarely met by chance
            b = int(chance.choice(np.flatnonzero(who == who[a])))
        same = bool(who[a] == who[b])
        if a != b and len(found[same]) < count:
            found[same].append((a, b))
    return np.array(found[True] + found[False]), np.repeat([True, False], count)


def verification(features: np.ndarray, chosen: np.ndarray, same: np.ndarray) -> float:
    """Return the verification accuracy by LFW's protocol: the threshold of a tenth comes from the other nine.

    Args:
        features: `(images, D)`, of length 1.
        chosen: pairs of images `(P, 2)`.
        same: which of them are of one person `(P,)`.
    """
    cosines = (features[chosen[:, 0]] * features[chosen[:, 1]]).sum(1)
    fold = np.random.default_rng(0).permutation(len(same)) % 10
    right = 0
    for k in range(10):
        own, other = fold == k, fold != k
        order = np.sort(cosines[other])
        hits = [((cosines[other] > t) == same[other]).mean() for t in order[:: max(1, len(order) // 200)]]
        best = order[:: max(1, len(order) // 200)][int(np.argmax(hits))]
        right += int(((cosines[own] > best) == same[own]).sum())
    return right / len(same)
