"""CIFAR's binary files: bytes as pixels and classes, several files as one, and files that are cut off."""

import pickle

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import Cifar


def written(path, count, ahead, seed):
    rows = np.random.default_rng(seed).integers(0, 256, (count, ahead + 3072), np.uint8)
    rows[:, :ahead] %= 10
    rows.tofile(path)
    return rows


def test_ten_classes_in_five_files(tmp_path):
    rows = np.concatenate([written(tmp_path / f"data_batch_{i}.bin", i, 1, i) for i in range(1, 6)])
    test = written(tmp_path / "test_batch.bin", 2, 1, 9)
    found = Cifar(tmp_path, shuffle=False, mean=(0,), std=(1 / 255,))
    assert len(found) == 15 and len(Cifar(tmp_path, train=False)) == 2
    for sample, row in zip(pickle.loads(pickle.dumps(found)), rows, strict=True):
        assert sample["labels"] == row[0]
        np.testing.assert_allclose(sample["images"], row[1:].reshape(3, 32, 32), atol=1e-3)
    assert Cifar(tmp_path, train=False, shuffle=False)[1]["labels"] == test[1, 0]
    assert len(pickle.dumps(found)) < 3000


def test_a_hundred_classes(tmp_path):
    rows = written(tmp_path / "train.bin", 3, 2, 0)
    assert [int(sample["labels"]) for sample in Cifar(tmp_path, shuffle=False)] == rows[:, 1].tolist()
    assert [int(sample["labels"]) for sample in Cifar(tmp_path, shuffle=False, coarse=True)] == rows[:, 0].tolist()


def test_refused(tmp_path):
    with pytest.raises(DataError, match="files are missing\n.*test_batch.bin or test.bin"):
        Cifar(tmp_path, train=False)
    written(tmp_path / "train.bin", 3, 1, 0)
    with pytest.raises(DataError, match="an image has 3074 bytes"):
        Cifar(tmp_path)
