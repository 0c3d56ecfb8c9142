"""Augmented batches from JPEG files, two workers, beside torchvision's datasets, transforms and PyTorch's loader.

    PYTHONPATH=. python -m benchmarks.vision_data [--write]        # needs torch and torchvision
    PYTHONPATH=. python -m benchmarks.vision_data --leak           # resident memory over 20,000 batches, ours alone

Files are JPEGs of 500 × 375 pixels, a folder per class. Each image is decoded, a random part of it is brought to
224 × 224, mirrored half of the time, made floats and normalised, by both with Pillow. Workers persist, and the first
epoch, in which they start, is not counted; rounds alternate, so that other load on the machine hits both.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import resource
import statistics
import tempfile
import time
from typing import Any

import numpy as np

IMAGES, BATCH, WORKERS, ROUNDS = 256, 32, 2, 5
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RESULT = pathlib.Path(__file__).parent / "results" / "vision_data.md"


def write_files(folder: str) -> None:
    """Write the JPEG files: smooth pictures with some noise, about 50 kB each."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for i in range(IMAGES):
        os.makedirs(f"{folder}/{i % 4}", exist_ok=True)
        coarse = rng.integers(0, 256, (12, 16, 3), np.uint8)
        smooth = np.asarray(Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC), np.int16)
        picture = (smooth + rng.integers(-12, 13, smooth.shape)).clip(0, 255).astype(np.uint8)
        Image.fromarray(picture).save(f"{folder}/{i % 4}/{i}.jpg", quality=90)


def ours(folder: str) -> Any:
    """Return our loader."""
    from sbpjax.utils.data import DataLoader
    from sbpjax.vision import transforms as T
    from sbpjax.vision.datasets import ImageFolder

    ways = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
    data = ImageFolder(folder, ways)
    return DataLoader(data, BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True)


def torchvisions(folder: str) -> Any:
    """Return PyTorch's loader of torchvision's dataset."""
    import torch
    import torchvision
    from torchvision.transforms import v2

    ways = v2.Compose(
        [
            v2.RandomResizedCrop(224),
            v2.RandomHorizontalFlip(),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    data = torchvision.datasets.ImageFolder(folder, ways)
    return torch.utils.data.DataLoader(data, BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True)


def epoch_s(loader: Any) -> float:
    """Return the seconds of an epoch."""
    begin, seen = time.perf_counter(), 0
    for images, _ in loader:
        seen += images.shape[0]
    assert seen == IMAGES
    return time.perf_counter() - begin


def compare(folder: str) -> str:
    """Return the table of throughputs."""
    import torch
    import torchvision

    loaders = {"torchvision": torchvisions(folder), "sbpjax": ours(folder)}
    for loader in loaders.values():
        epoch_s(loader)
    times: dict[str, list[float]] = {name: [] for name in loaders}
    for _ in range(ROUNDS):
        for name, loader in loaders.items():
            times[name].append(epoch_s(loader))
    text = (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {WORKERS} workers, batches of {BATCH}; "
    )
    text += f"torch {torch.__version__}, torchvision {torchvision.__version__}; median of {ROUNDS} rounds\n\n"
    text += "| loader | images/s | of torchvision's, median of rounds |\n|---|---|---|\n"
    for name, some in times.items():
        share = statistics.median(a / b for a, b in zip(times["torchvision"], some, strict=True))
        text += f"| {name} | {IMAGES / statistics.median(some):.0f} | {share:.2f} |\n"
    return text


def leak(folder: str, batches: int = 20_000) -> str:
    """Return how the resident memory of this process grows over many batches of four small images."""
    from sbpjax.utils.data import DataLoader
    from sbpjax.vision import transforms as T
    from sbpjax.vision.datasets import ImageFolder

    ways = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
    data = ImageFolder(folder, ways, at_least=32)
    loader = DataLoader(data, 4, shuffle=True, num_workers=WORKERS, persistent_workers=True)
    seen, text = 0, "| batches | resident memory of the training process, MB | peak |\n|---|---|---|\n"
    marks = [batches // 10, batches // 2, batches]
    while seen < batches:
        for _ in loader:
            seen += 1
            if seen in marks:
                pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                text += f"| {seen} | {pages * os.sysconf('SC_PAGE_SIZE') / 2**20:.0f} | {peak:.0f} |\n"
    return text


def main() -> None:
    """Measure, print, and write the page with ``--write``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--leak", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        text = leak(folder) if options.leak else compare(folder)
    print(text)
    if options.write:
        head = "# Augmented batches from JPEG files\n\n`python -m benchmarks.vision_data --write`. "
        RESULT.write_text(head + text)


if __name__ == "__main__":
    main()
