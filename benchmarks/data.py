"""Data loading: four workers beside PyTorch's on the same decoding, and how long a training loop waits for input.

    PYTHONPATH=. python -m benchmarks.data

An image of 224 × 224 is stored compressed; a sample is unpacked, cropped, flipped and scaled to float32, all in NumPy.
Both loaders run the same class with the same number of workers, which persist: the first epoch, in which they start, is
not counted. Rounds alternate, so that other load on the machine hits both. For the wait, a step takes as long as the
workers need for a batch and half as much again, as it would on an accelerator, and the host sleeps meanwhile; epochs
are longer there, since until every worker has batches ahead a loop waits for the slowest.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
import zlib

import numpy as np

IMAGES, BATCH, WORKERS, ROUNDS = 1024, 32, 4, 5
WAIT_IMAGES = 8192
SIZE, CROP = 224, 192


class Images:
    """Compressed images, unpacked when asked for."""

    def __init__(self, count: int) -> None:
        rng = np.random.default_rng(0)
        smooth = np.cumsum(rng.integers(-2, 3, (8, SIZE, SIZE, 3), np.int8), axis=1).astype(np.uint8)
        self.packed = [zlib.compress(image.tobytes(), 1) for image in smooth]
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        raw = zlib.decompress(self.packed[index % len(self.packed)])
        image = np.frombuffer(raw, np.uint8).reshape(SIZE, SIZE, 3)
        top, left = (index * 7) % (SIZE - CROP), (index * 13) % (SIZE - CROP)
        image = image[top : top + CROP, left : left + CROP]
        image = image[:, ::-1] if index % 2 else image
        return np.ascontiguousarray(image.transpose(2, 0, 1)).astype(np.float32) / 255 - 0.5, index


def epoch_s(loader) -> float:
    """Return the seconds of one epoch."""
    begin, seen = time.perf_counter(), 0
    images = None
    for images, labels in loader:  # noqa: B007  # the last one is looked at below
        seen += labels.shape[0]
    assert seen == IMAGES and images.shape[1:] == (3, CROP, CROP)
    return time.perf_counter() - begin


def wait_share(loader, step_s: float) -> float:
    """Return the part of a training loop's time that is spent in waiting for batches, the first one left out."""
    batches = iter(loader)
    next(batches)
    begin, waited = time.perf_counter(), 0.0
    while True:
        time.sleep(step_s)
        requested = time.perf_counter()
        batch = next(batches, None)
        waited += time.perf_counter() - requested
        if batch is None:
            return waited / (time.perf_counter() - begin)


def main() -> None:
    """Measure and print."""
    import torch

    import sbpjax as flow

    dataset = Images(IMAGES)
    options = {"batch_size": BATCH, "num_workers": WORKERS, "persistent_workers": True}
    ours = flow.utils.data.DataLoader(dataset, **options)
    theirs = torch.utils.data.DataLoader(dataset, **options)
    epoch_s(ours), epoch_s(theirs)
    pairs = [(epoch_s(ours), epoch_s(theirs)) for _ in range(ROUNDS)]
    rates = [IMAGES / statistics.median(times) for times in zip(*pairs)]
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; torch {torch.__version__}")
    print(f"{WORKERS} workers, batches of {BATCH}: {rates[0]:.0f} images/s, PyTorch {rates[1]:.0f} images/s")
    print(f"throughput ratio, median of {ROUNDS} pairs: {ratio:.2f} (bound 0.9)")
    step_s = 1.5 * BATCH / rates[0]
    ours.close()
    longer = flow.utils.data.DataLoader(Images(WAIT_IMAGES), **options)
    shares = sorted(wait_share(longer, step_s) for _ in range(3))
    print(f"steps of {1e3 * step_s:.0f} ms, {WAIT_IMAGES // BATCH} an epoch: {100 * shares[1]:.2f} % of the time is")
    print(f"waiting for input (bound 2 %; {', '.join(f'{100 * s:.2f}' for s in shares)} in three epochs)")
    longer.close()


if __name__ == "__main__":
    main()
