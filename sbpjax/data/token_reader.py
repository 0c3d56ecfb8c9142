"""`GPTIndexedBinDataReader`: OneFlow's layer that reads batches from Megatron's token files.

    reader = nn.GPTIndexedBinDataReader("corpus_text_document", seq_length=1024, num_samples=10_000, batch_size=8)
    tokens = reader()                        # (8, 1025) int64: 1024 tokens and the next one

Each call gives the next batch; under a placement the batch is one logical tensor, the same whatever the sbp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax.nn.module import Module

from .token_index import check_tokens, read_index


class GPTIndexedBinDataReader(Module):
    """Batches of token sequences from Megatron's indexed files, `<prefix>.bin` and `<prefix>.idx`.

    The documents of the chosen share follow each other in random order, epoch after epoch; sample i is the
    tokens ``[i * seq_length, (i + 1) * seq_length]``, so neighbouring samples share one token. Samples come shuffled.

    Args:
        data_file_prefix: path of the files without their endings.
        seq_length: tokens of a sample, to which the next one is added.
        num_samples: samples of an epoch of this reader.
        batch_size: samples of a batch.
        dtype: of the result.
        shuffle: shuffle documents and samples.
        random_seed: the seed of it; None or a negative number is a random one.
        split_sizes: shares of the documents, e.g. ``["949", "50", "1"]``; None is all.
        split_index: which share is read.
        device: where batches go.
        placement: the devices of global batches.
        sbp: their layout.
    """

    def __init__(
        self,
        data_file_prefix: str,
        seq_length: int,
        num_samples: int,
        batch_size: int,
        dtype: Any = None,
        shuffle: bool = True,
        random_seed: int | None = None,
        split_sizes: Sequence[str] | None = None,
        split_index: int | None = None,
        device: Any = None,
        placement: Any = None,
        sbp: Any = None,
    ):
        super().__init__()
        self.seq_length, self.num_samples, self.batch_size = seq_length, num_samples, batch_size
        self.dtype = dtype or dtypes.int64
        self.device, self.placement, self.sbp = device, placement, sbp
        self._operation = f"GPTIndexedBinDataReader({data_file_prefix!r})"
        index = read_index(data_file_prefix, self._operation)
        self._sizes, self._starts, documents = index.lengths, index.pointers // index.dtype.itemsize, index.documents
        self._tokens = np.memmap(f"{data_file_prefix}.bin", dtype=index.dtype, mode="r")
        low, high = _share(len(documents) - 1, split_sizes, split_index)
        rng = np.random.default_rng(None if random_seed is None or random_seed < 0 else random_seed)
        self._order, self._ends = self._order_sequences(documents, low, high, shuffle, rng)
        self._samples = rng.permutation(num_samples) if shuffle else np.arange(num_samples)
        self._next = 0

    def _order_sequences(self, documents, low: int, high: int, shuffle: bool, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return the sequences in the order of reading, and where each ends in the joined stream."""
        wanted, total, orders = self.num_samples * self.seq_length + 1, 0, []
        while total < wanted:
            chosen = rng.permutation(np.arange(low, high)) if shuffle else np.arange(low, high)
            order = np.concatenate([np.arange(documents[d], documents[d + 1]) for d in chosen])
            length = int(self._sizes[order].sum())
            if length == 0:
                rule = "the chosen share of the documents has tokens"
                fail("value", "GPTIndexedBinDataReader(...)", f"documents {low} to {high}", rule, "other split_sizes")
            orders.append(order)
            total += length
        order = np.concatenate(orders)
        return order, np.cumsum(self._sizes[order])

    def __len__(self) -> int:
        return self.num_samples // self.batch_size

    def _sample(self, number: int) -> np.ndarray:
        start, left = number * self.seq_length, self.seq_length + 1
        place = int(np.searchsorted(self._ends, start, side="right"))
        parts = []
        while left:
            sequence = self._order[place]
            inside = start - (int(self._ends[place]) - int(self._sizes[sequence]))
            count = min(left, int(self._sizes[sequence]) - inside)
            first = int(self._starts[sequence]) + inside
            parts.append(check_tokens(self._tokens[first : first + count], f"token {first}", self._operation))
            start, left, place = start + count, left - count, place + 1
        return np.concatenate(parts)

    def forward(self) -> Tensor:
        """Return the next `(batch_size, seq_length + 1)` tokens; the first sample follows the last."""
        numbers = [self._samples[(self._next + i) % self.num_samples] for i in range(self.batch_size)]
        self._next = (self._next + self.batch_size) % self.num_samples
        batch = np.stack([self._sample(int(n)) for n in numbers]).astype(self.dtype.np)
        made = from_data.tensor(batch, device=self.device)
        return made if self.placement is None else made.to_global(placement=self.placement, sbp=self.sbp)


def _share(documents: int, sizes: Sequence[str] | None, index: int | None) -> tuple[int, int]:
    """Return the first document of a share, and the one after its last."""
    if sizes is None:
        return 0, documents
    shares = np.array([float(s) for s in sizes])
    ends = np.round(np.concatenate([[0.0], np.cumsum(shares / shares.sum())]) * documents).astype(int)
    chosen = 0 if index is None else index
    return int(ends[chosen]), int(ends[chosen + 1])
