"""`ReplicaCheck`: compare the replicas of parameters, to find a device that computes wrong results.

    step 200    blocks.0.up.weight    devices 0 1 2 3: digest 8f1c02aa    device 5: digest 8f3c02aa

A device with a fault in its arithmetic or memory raises no error: its copy of a replicated parameter changes, and the
gradients of all devices change with it. Every few steps each device computes a digest of its parts of all parameters
and buffers, 32 bits per tensor, which a single flipped bit always changes. Devices that hold the same part must have
the same digest; the one that differs from the majority is named. With two replicas both are named.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax.errors import DistributedError
from sbpjax.utils import host

from .hook import Hook, is_due

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer

Part = tuple[int, tuple[tuple[int, int], ...]]  # the number of a tensor, and begin and end of each dim
Digests = dict[int, dict[Part, int]]  # by the rank of a device in placements, then by part


class ReplicaCheck(Hook):
    """Raise an error that names a device whose replica of a parameter differs from the others.

    It is called before `Checkpoints`, so the step in which a difference is found is not saved.

    Args:
        every: steps between two checks; the last step is checked, too.

    Example:
        >>> ReplicaCheck(every=100).every
        100
    """

    def __init__(self, *, every: int = 100):
        self.every = every

    def after_step(self, trainer: Trainer) -> None:
        """Compare the replicas if it is due; all processes call it.

        Raises:
            DistributedError: replicas differ; the text names the devices.
        """
        if is_due(trainer.step, self.every, trainer.max_steps):
            self.check(trainer)

    def check(self, trainer: Trainer) -> None:
        """Compare the replicas; errors as of `after_step`."""
        named = [*trainer.model.named_parameters(), *trainer.model.named_buffers()]
        mine = digest_parts([tensor.jax() for _, tensor in named])
        gathered = host.current().exchange("comparing replicas", mine)
        owner = {device: rank for rank, digests in gathered.items() for device in digests}
        wrong = find_different(digests for digests in gathered.values())
        if not wrong:
            return
        devices = sorted(wrong, key=lambda device: (-len(wrong[device]), device))
        first = named[min(wrong[devices[0]])][0]
        names = ", ".join(f"device {device} (process {owner[device]}): {len(wrong[device])}" for device in devices)
        raise DistributedError(
            f"ReplicaCheck(every={self.every}) after step {trainer.step}",
            f"tensors that differ from their replicas: {names}; the first is {first}",
            "replicas of a parameter are equal to the bit on all devices",
            "leave this machine out, and resume from a checkpoint of before the previous check",
        )


def digest_parts(arrays: Iterable[jax.Array]) -> Digests:
    """Return the digests of the parts of arrays that this process's devices hold."""
    parts: dict[Any, list[tuple[Part, jax.Array]]] = defaultdict(list)
    for number, array in enumerate(arrays):
        for shard in array.addressable_shards:
            ends = tuple(slice_.indices(size)[:2] for slice_, size in zip(shard.index, array.shape, strict=True))
            parts[shard.device].append(((number, ends), shard.data))
    computed = {device: _digest_all([data for _, data in held]) for device, held in parts.items()}  # side by side
    ranks = {device: rank for held in computed for rank, device in enumerate(jax.devices(held.platform))}
    return {
        ranks[device]: dict(zip((part for part, _ in held), np.asarray(computed[device]).tolist(), strict=True))
        for device, held in parts.items()
    }


def find_different(gathered: Iterable[Mapping[int, Mapping[Part, int]]]) -> dict[int, set[int]]:
    """Return the devices whose digests differ from most of their replicas, with the numbers of the tensors.

    Args:
        gathered: the digests of each process.

    Example:
        >>> part = (0, ((0, 4),))
        >>> find_different([{0: {part: 7}, 1: {part: 7}}, {2: {part: 9}}])
        {2: {0}}
    """
    replicas: dict[Part, dict[int, int]] = defaultdict(dict)
    for digests in gathered:
        for device, held in digests.items():
            for part, digest in held.items():
                replicas[part][device] = digest
    wrong: dict[int, set[int]] = defaultdict(set)
    for (number, _), held in replicas.items():
        (digest, most), *_ = Counter(held.values()).most_common(1)
        for device, found in held.items():
            if most < len(held) and (found != digest or 2 * most <= len(held)):
                wrong[device].add(number)
    return dict(wrong)


@host.jit_without_mesh
def _digest_all(arrays: list[jax.Array]) -> jax.Array:
    return jnp.stack([_digest(array) for array in arrays])


def _digest(array: jax.Array) -> jax.Array:
    """Return the sum of the bits of each element times an odd weight, modulo 2^32: one flipped bit changes it."""
    if jnp.iscomplexobj(array):
        array = jnp.stack([array.real, array.imag])
    if array.dtype == jnp.bool_:
        array = array.astype(jnp.uint8)
    size = min(array.dtype.itemsize, 4)
    bits = jax.lax.bitcast_convert_type(array, f"uint{8 * size}").reshape(-1).astype(jnp.uint32)
    return jnp.sum(bits * (2 * jnp.arange(bits.size, dtype=jnp.uint32) + 1), dtype=jnp.uint32)
