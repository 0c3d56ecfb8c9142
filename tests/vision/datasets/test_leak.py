"""Memory of the input pipeline stays flat: files, transforms, workers, batches, a compiled transform of each batch."""

import os
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.utils.data import DataLoader, Dataset
from sbpjax.vision import datasets
from sbpjax.vision import transforms as T

MOST_MB = 8  # that all processes together may grow from one tenth of the run to its end


class Repeated(Dataset):
    """The samples of a dataset again and again; what is random in them follows from their number in the run."""

    def __init__(self, photos, size):
        self.photos, self.size = photos, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        epoch, number = divmod(index, len(self.photos))
        self.photos.set_epoch(epoch)
        return self.photos[number]


def memory_mb():
    """Return the memory of this process and its children that no other process shares."""
    own, total = os.getpid(), 0
    parents = {int(p.name): p for p in Path("/proc").iterdir() if p.name.isdigit()}
    for number, folder in parents.items():
        try:
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
            if number == own or int(status["PPid"]) == own:
                rows = (folder / "smaps_rollup").read_text().splitlines()
                total += sum(int(row.split()[1]) for row in rows if row.startswith(("Private_Clean", "Private_Dirty")))
        except (OSError, KeyError):  # one that has just ended
            continue
    return total / 1024


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads Linux's /proc")
@pytest.mark.parametrize("batches", [400, pytest.param(20_000, marks=pytest.mark.exhaustive)])
def test_memory_is_flat(batches, tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for i in range(4):
            Image.fromarray(rng.integers(0, 255, (72, 96, 3), np.uint8)).save(tmp_path / name / f"{i}.jpg")
    ways = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.TrivialAugmentWide(), T.ToTensor()], seed=1)
    photos = Repeated(datasets.ImageFolder(tmp_path, ways), batches * 4)
    on_device = T.OnDevice([T.RandomHorizontalFlip(), T.Normalize([0.5] * 3, [0.5] * 3)], seed=2)
    loader = DataLoader(photos, batch_size=4, num_workers=2)
    total, seen = flow.zeros(()), {}
    for number, (images, labels) in enumerate(loader):
        total = total + on_device(images, numbers=range(4 * number, 4 * number + 4)).mean() + labels.sum()
        if number in (batches // 10, batches - 1):
            assert np.isfinite(total.item())
            seen[number] = memory_mb()
    first, last = seen.values()
    assert last - first < MOST_MB, seen
