"""`OnDevice`: the values of `Compose`, one program, split batches, wrong calls."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.vision import transforms as T
from tests.vision.transforms.pictures import image_of

WAYS = [
    T.RandomResizedCrop((12, 14)), T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.ColorJitter(0.4, 0.4, 0.4, 0.1),
    T.RandomGrayscale(0.3), T.ToTensor(), T.RandomCrop(10, padding=2), T.Normalize([0.5] * 3, [0.2, 0.3, 0.4]),
    T.RandomErasing(0.7),
]  # fmt: skip
NUMBERS = [5, 6, 7, 8]


@pytest.mark.parametrize("split", [False, True])
def test_values_of_compose(split):
    batch = np.stack([image_of("float").numpy()] * 4)
    placed = {"placement": flow.placement("cpu", [0, 1]), "sbp": flow.sbp.split(0)} if split else {}
    found = T.OnDevice(WAYS, seed=3)(flow.tensor(batch, **placed), NUMBERS)
    assert not split or found.sbp == (flow.sbp.split(0),)
    one_by_one = [
        T.Compose(WAYS, seed=3)(flow.tensor(x), number=n).numpy() for x, n in zip(batch, NUMBERS, strict=True)
    ]
    np.testing.assert_allclose(found.numpy(), np.stack(one_by_one), atol=1e-5)


def test_whole_numbers_and_fixed_sizes():
    ways = [T.Resize(10), T.CenterCrop((12, 8))]
    batch = flow.stack([image_of("uint8")] * 2)
    found = T.OnDevice(ways)(batch, [0, 1])
    assert found.dtype == flow.uint8
    assert (found.numpy() == T.Compose(ways)(batch).numpy()).all()


def test_one_program_for_all_batches():
    ways = T.OnDevice([T.RandomResizedCrop(8), T.RandomErasing(1.0)])
    batch = flow.stack([image_of("float")] * 2)
    first, second = ways(batch, [0, 1]), ways(batch, [2, 3])
    assert (first.numpy() != second.numpy()).any() and len(ways._program._g.programs) == 1


def test_wrong_calls():
    with pytest.raises(DataError, match="do the others before the batch is made, in Compose"):
        T.OnDevice([T.RandAugment()])
    with pytest.raises(DataError, match="bilinear"):
        T.OnDevice([T.RandomResizedCrop(8, interpolation="bicubic")])
    with pytest.raises(DataError, match=r"numbers=range\(first, first \+ B\)"):
        T.OnDevice([T.ToTensor()])(flow.zeros(2, 3, 8, 8), [0])
