"""Discs, boxes and triangles on a noisy ground, drawn into files, with annotations in COCO's format."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import comm, env
from sbpjax.utils.data import Dataset
from sbpjax.vision import datasets, ops
from sbpjax.vision import transforms as T
from sbpjax.vision.models.detection import pad_targets

SIZE = 300
KINDS = ("disc", "box", "triangle")  # the categories 1, 2 and 3
MOST = 4  # shapes on an image


def corners(kind: str, middle: np.ndarray, radius: float, turn: float) -> np.ndarray:
    """Return the corners `(N, 2)` of a shape; a disc has many."""
    count = {"disc": 48, "box": 4, "triangle": 3}[kind]
    angles = turn + 2 * math.pi * np.arange(count) / count
    return middle + radius * np.stack([np.cos(angles), np.sin(angles)], 1)


def picture(rng: np.random.Generator) -> tuple[Any, list[tuple[int, list[float]]]]:
    """Return an image of Pillow, and of each shape on it its category and box: left, top, right, bottom."""
    from PIL import Image, ImageDraw

    ground = rng.uniform(40, 215, (2, 3))
    slope = np.linspace(0, 1, SIZE)[:, None, None]
    pixels = ground[0] * (1 - slope) + ground[1] * slope + rng.normal(0, 12, (SIZE, SIZE, 3))
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    draw, found = ImageDraw.Draw(image), []
    for _ in range(int(rng.integers(1, MOST + 1))):
        category, radius = int(rng.integers(1, len(KINDS) + 1)), rng.uniform(25, 70)
        points = corners(
            KINDS[category - 1], rng.uniform(radius, SIZE - radius, 2), radius, rng.uniform(0, 2 * math.pi)
        )
        box = [*points.min(0).tolist(), *points.max(0).tolist()]
        others = np.array([other for _, other in found]).reshape(-1, 4)
        if len(others) and ops.box_iou(flow.tensor([box]), flow.tensor(others.tolist())).max().item() > 0.1:
            continue  # shapes may touch, but none hides another
        colour = rng.uniform(0, 255, 3)
        while abs(colour - ground.mean(0)).max() < 60:
            colour = rng.uniform(0, 255, 3)
        draw.polygon([tuple(point) for point in points.tolist()], fill=tuple(colour.astype(int).tolist()))
        found.append((category, box))
    return image, found


def write(directory: str | os.PathLike, part: str, count: int, seed: int) -> None:
    """Write a part of the set, unless it is there: images, and ``PART.json``, which is written last.

    Args:
        directory: where.
        part: its name.
        count: how many images.
        seed: of all chance.
    """
    folder = Path(directory)
    if (folder / f"{part}.json").exists():
        return
    (folder / part).mkdir(parents=True, exist_ok=True)
    content: dict[str, list[dict]] = {
        "images": [],
        "annotations": [],
        "categories": [{"id": i, "name": name} for i, name in enumerate(KINDS, 1)],
    }
    for number in range(1, count + 1):
        image, found = picture(np.random.default_rng((seed, number)))
        image.save(folder / part / f"{number}.jpg", quality=90)
        content["images"].append({"id": number, "file_name": f"{number}.jpg", "width": SIZE, "height": SIZE})
        for category, (left, top, right, bottom) in found:
            box = [left, top, right - left, bottom - top]
            about = {"id": len(content["annotations"]) + 1, "image_id": number, "category_id": category}
            content["annotations"].append(about | {"bbox": box, "area": box[2] * box[3], "iscrowd": 0})
    (folder / f"{part}.json.part").write_text(json.dumps(content))
    (folder / f"{part}.json.part").replace(folder / f"{part}.json")


class Padded(Dataset):
    """Samples of `CocoDetection` with static shapes: ``images``, ``boxes`` ``(MOST, 4)``, ``labels`` and ``image_id``.

    Args:
        photos: the dataset, which ends with tensors.
    """

    def __init__(self, photos: datasets.CocoDetection) -> None:
        self.photos = photos

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, index: int) -> dict[str, Any]:
        sample = self.photos[index]
        boxes, labels = pad_targets([sample], MOST)
        images = sample["image"].numpy()
        return {"images": images, "boxes": boxes[0], "labels": labels[0], "image_id": np.int64(sample["image_id"])}


def shapes(directory: str, part: str, *, count: int, augment: bool = False) -> Padded:
    """Return a part of the set; rank 0 writes the files if they are missing.

    Args:
        directory: where the files are.
        part: ``"train"`` or ``"held_out"``.
        count: how many images there are.
        augment: mirror half of the images, and change their colours.
    """
    if env.get_rank() == 0:
        write(directory, part, count, seed=len(part))
    if env.get_world_size() > 1:
        comm.barrier()
    chance = [T.RandomHorizontalFlip(), T.ColorJitter(0.2, 0.2, 0.2)] if augment else []
    ways = T.Compose([*chance, T.ToTensor()], seed=0)
    return Padded(datasets.CocoDetection(Path(directory) / part, Path(directory) / f"{part}.json", ways))
