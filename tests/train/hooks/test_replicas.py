"""Devices whose replicas differ are named: one flipped bit, in any place of any dtype."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models
from sbpjax.errors import DistributedError
from sbpjax.train import Checkpoints, Hook, ReplicaCheck
from sbpjax.train.hooks.replicas import digest_parts, find_different
from tests.train.cases import trainer


def flip_bit(array, device, place, bit):
    """Return an array in whose part on one device a bit of an element is flipped."""
    parts = []
    for shard in array.addressable_shards:
        value = np.array(shard.data)
        if shard.device.id == device:
            flat = value.reshape(-1).view(f"u{value.dtype.itemsize}")
            flat[place % flat.size] ^= np.array(1, flat.dtype) << np.array(bit, flat.dtype)
        parts.append(jax.device_put(value, shard.device))
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)


class Fault(Hook):
    """Flips a bit of a parameter on one device after a step."""

    order = -1

    def __init__(self, step, device):
        self.step, self.device = step, device

    def after_step(self, trainer):
        if trainer.step == self.step:
            parameter = next(trainer.model.parameters())
            with flow.no_grad():
                parameter.copy_(flow.from_jax(flip_bit(parameter.jax(), self.device, 3, 1)))


@pytest.mark.parametrize("mesh", [{"data": 4}, {"data": 3, "tensor": 2}])
def test_a_flipped_bit_is_named_at_the_next_check_and_not_saved(mesh, tmp_path):
    hooks = [ReplicaCheck(every=2), Fault(3, 2), Checkpoints(every=1, keep_last=None)]
    made = trainer(tmp_path, parallel=models.Parallel(**mesh, device="cpu"), hooks=hooks, batch_size=12)
    with pytest.raises(DistributedError, match=r"device 2 \(process 0\): \d; the first is blocks\.0\.up") as error:
        made.fit()
    assert "after step 4" in str(error.value) and re.findall(r"device (\d)", str(error.value)) == ["2"]
    assert list(tmp_path.rglob("step_000000003")) and not list(tmp_path.rglob("step_000000004"))


def test_a_run_without_faults_goes_on():
    made = trainer(parallel=models.Parallel(data=2, tensor=2, device="cpu"), hooks=[ReplicaCheck(every=1)])
    made.fit()
    assert made.step == made.max_steps


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "int8", "bool"])
def test_every_bit_counts(dtype):
    placement = flow.placement("cpu", [0, 1, 2])
    array = (jnp.arange(6).reshape(2, 3) % 2).astype(dtype)
    array = flow.from_jax(array).to_global(placement, flow.sbp.broadcast).jax()
    bits = 1 if dtype == "bool" else 8 * array.dtype.itemsize
    assert find_different([digest_parts([array])]) == {}
    for bit in {0, bits // 2, bits - 1}:
        for place in (0, 5):
            assert find_different([digest_parts([array, flip_bit(array, 1, place, bit)])]) == {1: {1}}


def test_two_replicas_are_both_named_and_parts_of_one_device_never():
    one, other = (0, ((0, 4),)), (1, ((0, 2),))
    assert find_different([{0: {one: 7}}, {1: {one: 8}}]) == {0: {0}, 1: {0}}
    assert find_different([{0: {one: 7, other: 1}, 1: {one: 7}, 2: {one: 7}}]) == {}
