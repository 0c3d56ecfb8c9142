"""T5's samples: their lengths by the formula, and that inputs and targets together are the text."""

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import T5SpanCorruptionDataset, TokenFileWriter
from sbpjax.train.data.t5_span_corruption import lengths

END, SENTINEL = 1, 999


@pytest.fixture
def prefix(tmp_path):
    with TokenFileWriter(tmp_path / "t", np.uint16) as writer:
        writer.add(np.random.default_rng(0).integers(2, 900, 5000))
    return tmp_path / "t"


def test_published_lengths():
    assert lengths(512) == (568, 114)  # of the paper's runs
    for length in range(4, 400):
        tokens, targets = lengths(length)
        taken = max(round(tokens * 0.15), 1)
        spans = max(round(taken / 3), 1)
        assert length - 1 <= tokens - taken + spans + 1 <= length and targets == taken + spans + 1


@pytest.mark.parametrize(("density", "mean"), [(0.15, 3), (0.5, 3), (0.15, 1), (0.3, 10), (0.9, 2)])
def test_both_sides_are_the_text(prefix, density, mean):
    spans = T5SpanCorruptionDataset(
        prefix, 64, end=END, sentinel=SENTINEL, shuffle=False, density=density, mean_span=mean
    )
    for i, sample in enumerate(spans):
        tokens, targets = sample["input_ids"].tolist(), sample["labels"].tolist()
        assert len(tokens) == spans.input_length <= 64 and len(targets) == spans.target_length
        assert tokens.pop() == targets.pop() == END and tokens[0] < 900 <= targets[0]
        pieces, sentinel = [], None
        for token in targets:
            if token > 900:
                assert token == (SENTINEL if sentinel is None else sentinel - 1)
                sentinel = token
                pieces.append([])
            else:
                pieces[-1].append(token)
        assert all(pieces)
        again = []
        for token in tokens:
            again += pieces[SENTINEL - token] if token > 900 else [token]
        whole = spans.file.tokens[i * spans.text_length : (i + 1) * spans.text_length].tolist()
        assert again == whole and sum(map(len, pieces)) == pytest.approx(density * len(whole), abs=1)


def test_spans_are_anywhere_and_of_all_lengths(prefix):
    seen, found = np.zeros(60), set()
    spans = T5SpanCorruptionDataset(prefix, 60, end=END, sentinel=SENTINEL, samples=3000)
    for sample in spans:
        seen += sample["input_ids"] > 900
        found.update(np.diff(np.flatnonzero(sample["labels"] > 900)).tolist())
    assert seen[0] == 0 and (seen[1:57] > 0).all() and {2, 3, 4, 5, 6} <= found


def test_a_function_of_seed_and_number(prefix):
    one, two = (T5SpanCorruptionDataset(prefix, 64, end=END, sentinel=SENTINEL, seed=seed) for seed in (1, 2))
    assert all(np.array_equal(one.sample(9)[k], one.sample(9)[k]) for k in ("input_ids", "labels"))
    assert not np.array_equal(one.sample(9)["input_ids"], two.sample(9)["input_ids"])
    assert not np.array_equal(one.sample(0)["input_ids"], one.sample(one.per_epoch)["input_ids"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"length": 3}, "length=3"),
        ({"density": 1}, "density=1"),
        ({"sentinel": 1}, "each of 3 spans has a sentinel"),
        ({"length": 5000}, "t.bin has 5000 tokens\n  rule: a sample of length=5000 has"),
    ],
)
def test_refused(prefix, options, expected):
    with pytest.raises(DataError, match=expected):
        T5SpanCorruptionDataset(prefix, **({"length": 60, "end": END, "sentinel": SENTINEL} | options))
