"""Gradients that cross slices in 8 and 16 bits: their values, error feedback, and the bytes of the compiled program."""

import functools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, optim
from sbpjax.errors import TrainError
from sbpjax.train import CompressedGradients, StepOptions, Trainer
from sbpjax.train.compressed_gradients import sum_over_slices
from tests.support.slices import bytes_across
from tests.train.cases import TOWER, Points, Tower

# Half a unit in the last place, of 7 and 3 bits of mantissa.
RELATIVE_ERROR = {"bfloat16": 2.0**-8, "float8": 2.0**-4}


@pytest.mark.parametrize("dtype", RELATIVE_ERROR)
def test_values_are_within_the_error_of_the_format(dtype):
    x = np.random.default_rng(0).normal(size=(2, 64, 32)).astype(np.float32)
    total, left = sum_over_slices(flow.tensor(x), dtype, None)
    exact = x.sum(0)
    smallest = np.abs(x).max() * 2.0**-15  # of float8 numbers below 2^-6 of 448 the error is absolute
    bound = RELATIVE_ERROR[dtype] * np.abs(x).sum(0) + smallest * (dtype == "float8")
    assert (np.abs(total.numpy() - exact) <= bound * 1.01).all()
    assert np.abs(total.numpy() - exact).max() > 0
    np.testing.assert_allclose(total.numpy() + left.numpy().sum(0), exact, atol=1e-5)


@pytest.mark.parametrize("dtype", RELATIVE_ERROR)
def test_error_feedback_loses_nothing_in_the_long_run(dtype):
    """The mean of n compressed sums is off by one error over n; without feedback it stays off."""
    x = flow.tensor(np.random.default_rng(1).normal(size=(2, 256)).astype(np.float32))
    error, totals, steps = flow.zeros(2, 256), 0.0, 32
    for _ in range(steps):
        total, error = sum_over_slices(x + error, dtype, None)
        totals = totals + total.numpy()
    once = np.abs(sum_over_slices(x, dtype, None)[0].numpy() - x.numpy().sum(0)).max()
    assert np.abs(totals / steps - x.numpy().sum(0)).max() < 3 * once / steps


def train(model, steps=6):
    made = Trainer(
        model=model,
        optimizer=functools.partial(optim.SGD, lr=0.1),
        data=Points(16 * steps),
        batch_size=16,
        max_steps=steps,
        parallel=models.Parallel(data=2, fsdp=4, device="cpu"),
        sharding=TOWER,
        writers=[],
        options=StepOptions(clip=None),
    )
    made.fit()
    return made


@pytest.fixture(scope="module")
def start():
    flow.manual_seed(3)
    return {name: p.numpy() for name, p in Tower().named_parameters()}


def tower(start):
    model = Tower()
    for name, p in model.named_parameters():
        p.data = flow.tensor(start[name])
    return model


@pytest.fixture(scope="module")
def exact(start):
    made = train(tower(start))
    return {name: p.numpy() for name, p in made.model.named_parameters()}, bytes_across(
        made.train_step.hlo(*made.batch)
    )


@pytest.mark.parametrize(("dtype", "itemsize"), [("bfloat16", 2), ("float8", 1)])
def test_training_moves_fewer_bytes_to_the_same_parameters(start, exact, dtype, itemsize):
    made = train(CompressedGradients(tower(start), 2, dtype))
    values, full = exact
    moved = {name: np.abs(values[name] - start[name]).max() for name in values}
    for name, p in made.model.model.named_parameters():
        assert np.abs(p.numpy() - values[name]).max() <= 2 * RELATIVE_ERROR[dtype] * moved[name] + 1e-6
    # An all-reduce over two slices receives 4 bytes a number. Besides, 8 scales and the loss.
    assert bytes_across(made.train_step.hlo(*made.batch)) <= full * itemsize / 4 + 80


def test_only_known_formats_and_meshes():
    with pytest.raises(TrainError, match="gradients cross slices as one of bfloat16, float8"):
        CompressedGradients(Tower(), 2, "int4")
    with pytest.raises(TrainError, match="each rank of data has whole replicas, in one stage"):
        CompressedGradients(Tower(), 2, "float8").lay_out(models.Parallel(data=4, fsdp=2, device="cpu"), TOWER)
