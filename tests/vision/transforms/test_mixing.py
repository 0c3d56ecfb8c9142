"""`MixUp` and `CutMix`: shares of labels are those of the pixels; split batches; wrong calls."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.vision import transforms as T

IMAGES = np.arange(4, dtype=np.float32).reshape(4, 1, 1, 1) * np.ones((1, 3, 8, 8), np.float32)  # image i is all i
LABELS = np.arange(4)


@pytest.mark.parametrize("way", [T.MixUp, T.CutMix])
def test_shares_are_those_of_the_pixels(way):
    for number in range(4):
        images, shares = way(4)(flow.tensor(IMAGES), flow.tensor(LABELS), number)
        np.testing.assert_allclose(shares.numpy() @ np.arange(4), images.numpy().mean((1, 2, 3)), atol=1e-5)
        np.testing.assert_allclose(shares.sum(1).numpy(), 1, atol=1e-6)
    again = way(4)(flow.tensor(IMAGES), flow.tensor(LABELS), 3)[1]
    assert (again.numpy() == shares.numpy()).all()


@pytest.mark.parametrize("way", [T.MixUp, T.CutMix])
def test_a_split_batch_stays_split(way):
    placement = flow.placement("cpu", [0, 1])
    batch = [flow.tensor(x, placement=placement, sbp=flow.sbp.split(0)) for x in (IMAGES, LABELS)]
    images, shares = way(4)(*batch, 1)
    whole = way(4)(flow.tensor(IMAGES), flow.tensor(LABELS), 1)
    assert images.sbp == (flow.sbp.split(0),)
    np.testing.assert_allclose(images.numpy(), whole[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(shares.numpy(), whole[1].numpy(), atol=1e-6)


def test_a_number_in_a_traced_program_is_a_constant():
    either = T.mix(T.MixUp(4), T.CutMix(4))

    class Mixed(flow.nn.Graph):
        def build(self, images, labels):
            return either(images, labels, number=3)

    placement = flow.placement("cpu", [0, 1])
    batch = [flow.tensor(x, placement=placement, sbp=flow.sbp.split(0)) for x in (IMAGES, LABELS)]
    output = r"\(at .*test_mixing.py:\d+\)[\s\S]*would mix every batch alike[\s\S]*a Hook's before_step"
    with pytest.warns(UserWarning, match=output):
        images, shares = Mixed()(*batch)
    np.testing.assert_allclose(images.numpy(), either(*batch, 3)[0].numpy(), atol=1e-6)
    uneven = [flow.tensor(x[:3], placement=placement, sbp=flow.sbp.split(0)) for x in (IMAGES, LABELS)]
    assert either(*uneven, 3)[1].shape == (3, 4)  # no warning


def test_a_number_that_is_a_tensor():
    either, number = T.mix(T.MixUp(4), T.CutMix(4)), flow.tensor(3)
    batch = flow.tensor(IMAGES), flow.tensor(LABELS)
    np.testing.assert_array_equal(either(*batch, number)[0].numpy(), either(*batch, 3)[0].numpy())
    for way in (either, T.MixUp(4)):
        with pytest.raises(DataError, match=r"a number that a program traces[\s\S]*before its step"):
            flow.compile(way)(*batch, number)


def test_either_and_shares_again():
    either = T.mix(T.MixUp(4), T.CutMix(4))
    values = {len(np.unique(either(flow.tensor(IMAGES), flow.tensor(LABELS), i)[0][1].numpy())) for i in range(8)}
    assert values >= {1, 2}  # MixUp has one value in an image, CutMix two
    shares = T.MixUp(4)(flow.tensor(IMAGES), flow.tensor(LABELS), 0)[1]
    assert T.CutMix(4)(flow.tensor(IMAGES), shares, 0)[1].shape == (4, 4)


def test_wrong_calls():
    with pytest.raises(DataError, match="num_classes='3'"):
        T.MixUp("3")
    with pytest.raises(DataError, match="alpha='0.2'"):
        T.MixUp(3, alpha="0.2")
    with pytest.raises(DataError, match="num_classes=3 and 4"):
        T.mix(T.MixUp(3), T.CutMix(4))
    with pytest.raises(DataError, match=r"fix:  labels.long\(\)"):
        T.MixUp(3)(flow.ones(2, 3, 4, 4), flow.tensor([0.5, 1.7]), number=0)
    with pytest.raises(DataError, match="two classes or more"):
        T.MixUp(1)
    for way in (T.MixUp(4), T.mix(T.MixUp(4), T.CutMix(4))):
        with pytest.raises(DataError, match=r"no number[\s\S]*number=step"):
            way(flow.tensor(IMAGES), flow.tensor(LABELS))
    with pytest.raises(DataError, match="each has a label"):
        T.CutMix(4)(flow.tensor(IMAGES), flow.tensor(LABELS[:2]), 0)
    with pytest.raises(DataError, match="fix:  num_classes=3"):
        T.MixUp(4)(flow.tensor(IMAGES), flow.zeros(4, 3), 0)
