"""Batches of rows of about equal length: every row once, few widths, and any batch without those before it."""

import itertools

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import GLUE, Buckets, LabelledTexts, train_tokenizer
from sbpjax.utils.data import DataLoader

pytest.importorskip("tokenizers", reason="tokenizers is not installed")
ROWS, WIDTHS = 53, (4, 8, 16)


@pytest.fixture(scope="module")
def rows_text(tmp_path_factory):
    path = tmp_path_factory.mktemp("said") / "t.tsv"
    counts = np.random.default_rng(0).integers(1, 15, ROWS)
    path.write_text("sentence\tlabel\n" + "".join(f"{' '.join(['a'] * n)}\t{n % 2}\n" for n in counts))
    return LabelledTexts(path, train_tokenizer(["a a"], 300, model="wordpiece"), GLUE["sst2"], 16)


@pytest.mark.parametrize("drop_last", [False, True])
def test_every_row_once_in_the_smallest_width_that_a_batch_allows(rows_text, drop_last):
    batches = list(Buckets(rows_text, 4, WIDTHS, epochs=2, drop_last=drop_last))
    per_epoch = ROWS // 4 if drop_last else ROWS // 4 + 1
    assert len(batches) == len(Buckets(rows_text, 4, WIDTHS, epochs=2, drop_last=drop_last)) == 2 * per_epoch
    epochs = [list(itertools.chain(*batches[:per_epoch])), list(itertools.chain(*batches[per_epoch:]))]
    assert epochs[0] != epochs[1]
    for epoch in epochs:
        rows = [row for row, _ in epoch]
        assert len(set(rows)) == len(rows) == (4 * per_epoch if drop_last else ROWS)
        assert all(rows_text.widths[row] <= width for row, width in epoch)
        padded = sum(width - WIDTHS[np.searchsorted(WIDTHS, rows_text.widths[row])] > 0 for row, width in epoch)
        assert padded < 4 * len(WIDTHS)  # rows that went to the next width
    assert all(len({width for _, width in batch}) == 1 for batch in batches)
    assert sum(len(batch) < 4 for batch in batches) == (0 if drop_last else 2)


def test_loaders_go_on_anywhere(rows_text):
    def loader():
        return DataLoader(rows_text, batch_sampler=Buckets(rows_text, 4, WIDTHS, epochs=3, seed=1))

    whole = [{name: part.tolist() for name, part in batch.items()} for batch in loader()]
    assert {len(batch["input_ids"][0]) for batch in whole} == set(WIDTHS)
    for place in (1, 13, 14, 40):
        resumed = loader()
        resumed.load_state_dict(resumed.state_dict() | {"batches": place, "seed": 0})
        assert [{name: part.tolist() for name, part in batch.items()} for batch in resumed] == whole[place:]


def test_a_place_far_away_computes_its_own_epoch_alone(rows_text, monkeypatch):
    batches, requested = Buckets(rows_text, 4, WIDTHS, epochs=10**9), []
    of_epoch = batches._epoch_batches
    monkeypatch.setattr(batches, "_epoch", lambda epoch: requested.append(epoch) or of_epoch(epoch))
    place = 5 * 10**8 * batches.per_epoch + 3
    assert next(batches.starting_at(place)) == of_epoch(5 * 10**8)[3] and requested == [5 * 10**8]


def test_refused(rows_text):
    with pytest.raises(DataError, match="the widest holds the longest row"):
        Buckets(rows_text, 4, (4, 8))
    with pytest.raises(DataError, match="an epoch has one batch at least"):
        Buckets(rows_text, 100, WIDTHS, drop_last=True)
