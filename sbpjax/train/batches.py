"""Batch loaders of a run: global batches from a dataset, distributed to the stages of a pipeline.

    loader = global_loader(dataset, 32, spec, workers=4)     # shuffled if the dataset has no order of its own
    batch = to_stages(next(iter(loader)), spec, inputs, -1)  # targets on the last stage

Training data is shuffled and without partial batches; evaluation data keeps its order, with a padded last batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sbpjax as flow
from sbpjax.errors import TrainError
from sbpjax.models import Parallel
from sbpjax.models.parallel import BATCH
from sbpjax.utils.data import DataLoader, GlobalLoader, Sampler

from .data.numbered import Numbered


class PaddedBatches(Sampler):
    """Indices of batches in order, the last one padded with sample 0, so that all have one size.

    Args:
        samples: the number of samples.
        size: the batch size.
        most: the maximum number of batches; None for all.
    """

    def __init__(self, samples: int, size: int, most: int | None = None) -> None:
        count = -(-samples // size)
        self.samples, self.size, self.count = samples, size, count if most is None else min(count, most)

    def __iter__(self) -> Iterator[list[int]]:
        for first in range(0, self.count * self.size, self.size):
            yield [i if i < self.samples else 0 for i in range(first, first + self.size)]

    def __len__(self) -> int:
        return self.count

    def real(self, number: int) -> int:
        """Return the number of real samples of a batch, without padding."""
        return min(self.size, self.samples - number * self.size)


Check = Callable[[Any], None]


def global_loader(
    data: Any,
    batch_size: int | None,
    spec: Parallel,
    workers: int,
    sbp: Any = None,
    check: Check | None = None,
    only_sizes: bool = False,
) -> GlobalLoader:
    """Return the loader of a run's training batches.

    Args:
        data: a dataset, or a `DataLoader` with its own batch size.
        batch_size: samples of a batch, over all processes.
        spec: the mesh.
        workers: processes that fetch.
        sbp: the layout of a batch; by default that of `spec`.
        check: raises for an invalid batch; see `GlobalLoader`.
        only_sizes: no batch will be read, so that one sample is enough.

    Raises:
        TrainError: sizes are missing, given twice, or do not fit.
    """
    sbp = tuple(spec.batch) if sbp is None else sbp
    if isinstance(data, GlobalLoader):
        return data
    if isinstance(data, DataLoader):
        if batch_size is not None:
            rule = "a DataLoader has its own size of a batch"
            raise TrainError("Trainer(data=DataLoader(...))", f"batch_size={batch_size}", rule, "leave batch_size out")
        return GlobalLoader(data, spec.placement, layouts_of(data, sbp), check)
    if batch_size is None or batch_size < 1:
        rule = "a dataset is cut into batches of a size"
        raise TrainError("Trainer(data=...)", f"batch_size={batch_size}", rule, "batch_size=32")
    parts = math.prod(getattr(spec, axis) for axis in BATCH)
    if batch_size % parts:
        rule = f"{spec.equation}: {' × '.join(BATCH)} = {parts} ranks share a batch evenly"
        fix = f"batch_size={max(parts, batch_size // parts * parts)}"
        raise TrainError("Trainer(batch_size=...)", f"batch_size={batch_size}", rule, fix)
    if len(data) < (1 if only_sizes else batch_size):
        rule = "an epoch has one batch at least"
        raise TrainError("Trainer(data=...)", f"{len(data)} samples, batch_size={batch_size}", rule, "more samples")
    shuffle = not isinstance(data, Numbered)  # those have an order of their own
    loader = DataLoader(
        data, batch_size, shuffle=shuffle, num_workers=workers, drop_last=True, persistent_workers=workers > 0
    )
    return GlobalLoader(loader, spec.placement, layouts_of(loader, sbp), check)


def evaluation_loader(
    data: Any, batch_size: int, spec: Parallel, most: int | None, sbp: Any = None, check: Check | None = None
) -> tuple[GlobalLoader, Any]:
    """Return the loader of an evaluation, and its `PaddedBatches`, which count the real samples of a batch."""
    batches = PaddedBatches(len(data), batch_size, most)
    loader = DataLoader(data, batch_sampler=batches)
    layouts = layouts_of(loader, tuple(spec.batch) if sbp is None else sbp)
    return GlobalLoader(loader, spec.placement, layouts, check), batches


def layouts_of(loader: DataLoader, sbp: tuple[Any, ...]) -> Any:
    """Return the layouts of a batch's parts: that of tokens, but whole over an axis that splits a dim they lack."""

    def of(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {name: of(one) for name, one in part.items()}
        if isinstance(part, (list, tuple)):
            return [of(one) for one in part]
        return sbp_for_part(part, sbp)

    if flow.sbp.split(1) not in sbp:
        return sbp
    return of(loader.collate_fn([loader.dataset[0]]))


def sbp_for_part(part: Any, sbp: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the nd-sbp of a tensor of a batch."""
    flat = isinstance(part, flow.Tensor) and part.ndim < 2
    return tuple(flow.sbp.broadcast if flat and one == flow.sbp.split(1) else one for one in sbp)


def to_stages(batch: Any, spec: Parallel, inputs: frozenset[str], target_stage: int) -> Any:
    """Move the targets of a batch to the stage that reads them.

    Args:
        batch: on the first stage.
        spec: the mesh.
        inputs: names of a dict's entries that stay there; of a tuple it is the first entry.
        target_stage: the stage of the others.
    """
    place = spec.placements[target_stage]
    if spec.pipeline == 1 or target_stage == 0:
        return batch

    def there(part: Any) -> Any:
        return part.to_global(placement=place, sbp=part.sbp) if isinstance(part, flow.Tensor) else part

    if isinstance(batch, Mapping):
        return {name: part if name in inputs else there(part) for name, part in batch.items()}
    return [part if i == 0 else there(part) for i, part in enumerate(batch)] if isinstance(batch, list) else batch


def enlarge_batch(sample: Any, size: int, spec: Parallel, sbp: Any) -> Any:
    """Return abstract tensors of a batch of `size` samples on the mesh, from a batch of one sample."""
    if isinstance(sample, flow.Tensor):
        shape = (size, *sample.shape[1:])
        return flow.zeros(*shape, dtype=sample.dtype, placement=spec.placement, sbp=sbp_for_part(sample, sbp))
    if isinstance(sample, Mapping):
        return {name: enlarge_batch(part, size, spec, sbp) for name, part in sample.items()}
    return [enlarge_batch(part, size, spec, sbp) for part in sample] if isinstance(sample, (list, tuple)) else sample


def find_first_tensor(batch: Any) -> Any:
    """Return the first tensor of a batch."""
    if isinstance(batch, Mapping):
        return find_first_tensor(list(batch.values()))
    if isinstance(batch, (list, tuple)):
        return next(found for part in batch if (found := find_first_tensor(part)) is not None)
    return batch if isinstance(batch, flow.Tensor) else None


def take_samples(value: Any, count: int) -> Any:
    """Return the first samples of a batch, or of a model's outputs."""
    if isinstance(value, flow.Tensor):
        return value[:count] if value.ndim else value
    if isinstance(value, Mapping):
        return {name: take_samples(part, count) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(take_samples(part, count) for part in value)
    return value
