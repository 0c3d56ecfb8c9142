"""`GlobalLoader`: batches as global tensors; each process reads only the samples of its own devices.

    loader = DataLoader(tokens, batch_size=512, shuffle=True, num_workers=4)     # 512 samples over all processes
    for x, y in GlobalLoader(loader, placement, sbp.split(0)):
        ...                                        # x: global, (512, 1024), S0

On 64 devices of 8 processes, a process fetches the 64 samples of its own 8 devices. All processes must make the loader
alike and be seeded alike: they agree on the order of samples without talking.
"""

from __future__ import annotations

import collections
import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax.errors import DataError
from sbpjax.sbp import multi_host
from sbpjax.sbp.algebra import B, parse
from sbpjax.sbp.layout import Layout, layout_of

from .dataloader import DataLoader
from .dataset import IterableDataset
from .sampler import Sampler, start_order

_MANY_DIMS = 64


@functools.lru_cache(maxsize=64)
def local_samples(placement: Any, codes: frozenset[tuple[int, ...]], batch: int) -> tuple[int, ...]:
    """Return the samples of a batch that this process's devices hold, in order.

    Args:
        placement: the devices of a batch.
        codes: the sbp of the tensors of a batch, for each axis of the placement.
        batch: the number of samples.
    """
    found: set[int] = set()
    for each in codes:
        layout = layout_of(placement, tuple(c if c == 0 else B for c in each), (batch,), np.dtype(np.int32))
        _check_even(layout)
        for index in layout.sharding.addressable_devices_indices_map((batch,)).values():
            assert index is not None  # every device of a placement holds a part
            found.update(range(*index[0].indices(batch)))
    return tuple(sorted(found))


def _check_even(layout: Layout) -> None:
    if layout.partial_axes or not layout.is_even:
        rule = f"splits must divide {list(layout.shape)} evenly, and none may be partial_sum"
        fix = (
            "DataLoader(..., drop_last=True) with a batch_size that the placement divides; "
            "to see every sample, x.to_global(placement, sbp) of the batches of the DataLoader itself"
        )
        raise DataError("GlobalLoader(loader, placement, sbp)", f"sbp {layout.sbp}", rule, fix)


class _Part(Sampler):
    """The batches of a sampler, each cut down to the samples that are needed here.

    Attributes:
        sizes: of the batches given out and not used yet, before the cut.
    """

    def __init__(self, batches: Any, placement: Any, codes: frozenset[tuple[int, ...]]) -> None:
        self.batches, self.placement, self.codes = batches, placement, codes
        self.sizes: collections.deque[int] = collections.deque()

    def __iter__(self) -> Iterator[list[int]]:
        yield from self.starting_at(0)

    def starting_at(self, place: int) -> Iterator[list[int]]:
        """Return the parts from a batch on."""
        self.sizes.clear()
        return self._parts(start_order(self.batches, place))

    def _parts(self, batches: Iterator[list[int]]) -> Iterator[list[int]]:
        for batch in batches:
            self.sizes.append(len(batch))
            yield [batch[i] for i in local_samples(self.placement, self.codes, len(batch))]

    def __len__(self) -> int:
        return len(self.batches)


class GlobalLoader:
    """A loader's batches as global tensors.

    Args:
        loader: gives batches; its ``batch_size`` counts the samples of all processes.
        placement: the devices of the batches.
        sbp: their layout: an sbp or nd-sbp for all tensors, or a list or dict of them like the batches. Splits of dim 0
            divide the samples; other dims may be split too. No partial_sum.
        check: receives this process's part of each batch before it is placed, and raises if it is invalid.

    Raises:
        ValueError: the loader iterates over an `IterableDataset`, gives single samples, or a batch does not divide.

    Example:
        >>> for x, y in GlobalLoader(loader, placement, sbpjax.sbp.split(0)):
        ...     loss = model(x, y)
    """

    def __init__(
        self, loader: DataLoader, placement: Any, sbp: Any, check: Callable[[Any], None] | None = None
    ) -> None:
        if loader.batch_sampler is None or isinstance(loader.dataset, IterableDataset):
            rule = "all processes agree on which samples a batch has, so the dataset needs an index and batches a size"
            seen = f"batches of {loader.batch_size} from a {type(loader.dataset).__name__}"
            raise DataError("GlobalLoader(loader)", seen, rule, "DataLoader(dataset, batch_size=32)")
        self.loader, self.placement, self.sbp, self.check = loader, placement, sbp, check
        codes = frozenset(parse(each, placement, _MANY_DIMS) for each in _leaves(sbp))
        self._part = _Part(loader.batch_sampler, placement, codes)
        self._own = copy.copy(loader)
        self._own.batch_sampler = self._part

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator:
        for batch in self._own:
            if self.check is not None:
                self.check(batch)
            yield self._spread(batch, self.sbp, self._part.sizes.popleft())

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the loader; the same in all processes."""
        return self._own.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume at the position of `state_dict`, also on another number of processes."""
        self._own.load_state_dict(state_dict)

    def _spread(self, value: Any, sbp: Any, size: int) -> Any:
        """Return a batch, or a part of one, with its tensors made global."""
        if isinstance(value, Tensor):
            return self._as_global(value, sbp, size)
        if isinstance(value, Mapping):
            each = sbp if isinstance(sbp, Mapping) else dict.fromkeys(value, sbp)
            return {key: self._spread(part, each[key], size) for key, part in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            each = sbp if isinstance(sbp, list) else [sbp] * len(value)
            made = [self._spread(part, one, size) for part, one in zip(value, each, strict=True)]
            return type(value)(*made) if hasattr(value, "_fields") else made
        return value

    def _as_global(self, here: Tensor, sbp: Any, size: int) -> Tensor:
        shape = (size, *here.shape[1:])
        layout = Layout(self.placement, sbp, shape, here.dtype.np)
        _check_even(layout)
        rows = local_samples(self.placement, self._part.codes, size)
        array = here.numpy()
        if len(rows) == size:  # `device_put` would compare the whole batch with the other processes first
            spans = self.placement.spans_processes
            made = multi_host.from_logical(array, layout) if spans else jax.device_put(array, layout.sharding)
        else:
            places = {row: i for i, row in enumerate(rows)}

            def part(index: Any) -> np.ndarray:
                start, stop, _ = index[0].indices(size)
                return array[places[start] : places[start] + stop - start][(slice(None), *index[1:])]

            made = jax.make_array_from_callback(shape, layout.sharding, part)
        return wrap_any(made, layout)


def _leaves(sbp: Any) -> list:
    if isinstance(sbp, Mapping):
        return [leaf for each in sbp.values() for leaf in _leaves(each)]
    return [leaf for each in sbp for leaf in _leaves(each)] if isinstance(sbp, list) else [sbp]
