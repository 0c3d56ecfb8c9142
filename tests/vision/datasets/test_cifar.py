"""`Cifar`: pairs from the files; the files themselves are tested beside `sbpjax.train.data.cifar`."""

import pickle

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.vision import transforms as T
from sbpjax.vision.datasets import Cifar


def test_pairs(tmp_path):
    rows = np.random.default_rng(0).integers(0, 256, (4, 3074), np.uint8)
    rows.tofile(tmp_path / "test.bin")
    found = pickle.loads(pickle.dumps(Cifar(tmp_path, train=False)))
    assert (
        len(found) == 4 and found[3][1] == rows[3, 1] and Cifar(tmp_path, train=False, coarse=True)[2][1] == rows[2, 0]
    )
    assert (found[3][0].transpose(2, 0, 1).reshape(-1) == rows[3, 2:]).all()
    ways = T.Compose([T.RandomCrop(32, padding=4), T.ToTensor()])
    assert Cifar(tmp_path, ways, train=False)[0][0].shape == (3, 32, 32)
    with pytest.raises(DataError, match="files are missing"):
        Cifar(tmp_path)
