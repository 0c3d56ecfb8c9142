"""`Buckets`: length-bucketed batches, padded to one of a few widths to limit compilations and padding.

    rows = LabelledTexts("train.tsv", tokenizer, GLUE["sst2"], length=128)
    batches = Buckets(rows, batch_size=32, widths=(32, 64, 128), epochs=3)
    loader = DataLoader(rows, batch_sampler=batches)

Each width has the rows that do not fit into the one before it. Rows of a width that do not fill a batch go to the next
width, so every row comes once per epoch, and one batch at most is short: the last of the widest. The rows of a batch
are a function of `seed`, the epoch and the batch's place in it: all processes agree without communication, and a run
that resumes at batch 100,000 computes that batch's epoch alone.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from sbpjax.errors import DataError
from sbpjax.utils.data import Sampler

from .labelled_texts import LabelledTexts


class Buckets(Sampler):
    r"""Batches for ``DataLoader(dataset, batch_sampler=...)``: lists of (row, width) pairs.

    Args:
        dataset: the rows.
        batch_size: the number of rows of a batch.
        widths: the padded lengths; the widest holds the longest row.
        epochs: the number of epochs of a run.
        seed: of the order, 0 or more.
        drop_last: leave out the short batch at the end of an epoch's widest rows, if there is one.

    Raises:
        DataError: a row is longer than the widest, or an epoch has no batch.

    Example:
        >>> with open("table.tsv", "w") as file:
        ...     _ = file.write("sentence\tlabel\n" + "a good one\t1\nno\t0\n" * 3)
        >>> tokenizer = train_tokenizer(["a good one", "no"], 300, model="wordpiece")
        >>> rows = LabelledTexts("table.tsv", tokenizer, GLUE["sst2"], length=16)
        >>> [(len(batch), batch[0][1]) for batch in Buckets(rows, 2, widths=(4, 16))]
        [(2, 4), (2, 16), (2, 16)]
    """

    def __init__(
        self,
        dataset: LabelledTexts,
        batch_size: int,
        widths: Sequence[int],
        *,
        epochs: int = 1,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.widths, self.batch_size, self.epochs = sorted(widths), batch_size, epochs
        self.seed, self.drop_last, self._rows = seed, drop_last, dataset.widths
        if not self.widths or self.widths[-1] < self._rows.max():
            rule = f"the widest holds the longest row, of {self._rows.max()} tokens"
            raise DataError("Buckets(dataset, widths=...)", f"widths {self.widths}", rule, f"{self._rows.max()} too")
        count = len(self._rows)
        self.per_epoch = count // batch_size if drop_last else -(-count // batch_size)
        if not self.per_epoch:
            seen = f"{count} rows, batch_size={batch_size}"
            raise DataError("Buckets(dataset, batch_size)", seen, "an epoch has one batch at least", "drop_last=False")
        self._epoch = functools.lru_cache(maxsize=2)(self._epoch_batches)

    def __len__(self) -> int:
        return self.epochs * self.per_epoch

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        return self.starting_at(0)

    def starting_at(self, place: int) -> Iterator[list[tuple[int, int]]]:
        """Return the batches from one on."""
        for batch in range(place, len(self)):
            epoch, index = divmod(batch, self.per_epoch)
            yield self._epoch(epoch)[index]

    def _epoch_batches(self, epoch: int) -> list[list[tuple[int, int]]]:
        """Return the batches of an epoch."""
        random = np.random.default_rng((self.seed, epoch))
        order = random.permutation(len(self._rows))
        home = np.searchsorted(self.widths, self._rows[order])
        batches, waiting = [], order[:0]
        for i, width in enumerate(self.widths):
            rows = np.concatenate([waiting, order[home == i]])
            whole = len(rows) // self.batch_size * self.batch_size
            batches += [(part, width) for part in rows[:whole].reshape(-1, self.batch_size)]
            waiting = rows[whole:]
        if len(waiting) and not self.drop_last:
            batches.append((waiting, self.widths[-1]))
        return [[(int(row), batches[i][1]) for row in batches[i][0]] for i in random.permutation(len(batches))]
