"""BERT's samples: which windows there are, what is asked, and how much is hidden by what."""

import struct

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import BertPretrainingDataset, SpecialTokens, TokenFileWriter

SPECIAL, VOCABULARY = SpecialTokens(pad=0, begin=1, end=2, mask=3), 1000
LENGTH = 13  # windows of 10 tokens
DOCUMENTS = [list(range(100, 125)), [], [200], [300, 301], list(range(400, 411))]  # windows: 10, 10, 5; 2; 10


@pytest.fixture
def prefix(tmp_path):
    with TokenFileWriter(tmp_path / "t", np.uint16) as writer:
        for document in DOCUMENTS:
            writer.add(document)
    return tmp_path / "t"


def text(sample):
    """Return the two pieces of a sample, what was hidden put back."""
    tokens = np.where(sample["labels"] >= 0, sample["labels"], sample["input_ids"])
    ends = np.flatnonzero(tokens == SPECIAL.end)
    assert tokens[0] == SPECIAL.begin and len(ends) == 2 and sample["attention_mask"].sum() == ends[1] + 1
    assert (tokens[ends[1] + 1 :] == SPECIAL.pad).all()
    assert sample["token_type_ids"].tolist() == [int(ends[0] < i <= ends[1]) for i in range(len(tokens))]
    return tokens[1 : ends[0]].tolist(), tokens[ends[0] + 1 : ends[1]].tolist()


def test_windows_and_their_order(prefix):
    pairs = BertPretrainingDataset(prefix, LENGTH, SPECIAL, VOCABULARY, shuffle=False, samples=200)
    assert pairs.per_epoch == 5
    windows = [DOCUMENTS[0][:10], DOCUMENTS[0][10:20], DOCUMENTS[0][20:], DOCUMENTS[3], DOCUMENTS[4][:10]]
    requested, cuts = [], set()
    for i, sample in enumerate(pairs):
        first, second = text(sample)
        assert (second + first if sample["next_sentence_label"] else first + second) == windows[i % 5]
        requested.append(int(sample["next_sentence_label"]))
        cuts.add(len(first))
        shapes = {name: value.shape for name, value in sample.items()}
        assert shapes == dict.fromkeys(("input_ids", "token_type_ids", "attention_mask", "labels"), (LENGTH,)) | {
            "next_sentence_label": ()
        }
    assert 0.3 < np.mean(requested) < 0.7 and cuts == set(range(1, 10))


def test_the_next_sentence_is_of_another_document(prefix):
    home = {token: d for d, document in enumerate(DOCUMENTS) for token in document}
    requested = []
    for sample in BertPretrainingDataset(prefix, LENGTH, SPECIAL, VOCABULARY, pair_task="next", samples=300):
        first, second = text(sample)
        requested.append(int(sample["next_sentence_label"]))
        parted = len({home[token] for token in first + second}) == 2
        assert parted == bool(requested[-1]) and len({home[token] for token in second}) == 1
        if not parted:
            assert second[0] == first[-1] + 1
    assert 0.4 < np.mean(requested) < 0.6


def test_sentences_of_the_file_are_kept_whole(tmp_path):
    np.arange(100, 110, dtype=np.uint16).tofile(tmp_path / "t.bin")
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, 3, 2)
    (tmp_path / "t.idx").write_bytes(head + struct.pack("<3i3q2q", 2, 3, 5, 0, 4, 10, 0, 3))
    cuts = set()
    for sample in BertPretrainingDataset(tmp_path / "t", LENGTH, SPECIAL, VOCABULARY, samples=50):
        pieces = text(sample)
        cuts.add(len(pieces[1] if sample["next_sentence_label"] else pieces[0]))
    assert cuts == {2, 5}


def test_how_much_is_hidden_by_what(tmp_path):
    rng = np.random.default_rng(0)
    with TokenFileWriter(tmp_path / "t", np.uint16) as writer:
        writer.add(rng.integers(4, VOCABULARY, 125 * 400))
    pairs = BertPretrainingDataset(tmp_path / "t", 128, SPECIAL, VOCABULARY)
    kinds, places = {"hidden": 0, "kept": 0, "other": 0}, np.zeros(128)
    for sample in pairs:
        masked = sample["labels"] >= 0
        assert masked.sum() == round(0.15 * 125) and (sample["labels"][~masked] == -100).all()
        assert not np.isin(sample["labels"][masked], SPECIAL).any()
        now, then = sample["input_ids"][masked], sample["labels"][masked]
        kinds["hidden"] += int((now == SPECIAL.mask).sum())
        kinds["kept"] += int((now == then).sum())
        kinds["other"] += int(((now != SPECIAL.mask) & (now != then)).sum())
        assert not np.isin(now[now != SPECIAL.mask], SPECIAL).any()
        places += masked
    total = sum(kinds.values())
    for kind, share in (("hidden", 0.8), ("kept", 0.1), ("other", 0.1)):
        assert abs(kinds[kind] / total - share) < 4 * np.sqrt(share * (1 - share) / total) + 0.001, kinds
    assert places[0] == 0 and (places[1:127] > 0).all()


def test_whole_words(tmp_path):
    with TokenFileWriter(tmp_path / "t", np.uint16) as writer:
        writer.add(np.tile([10, 501, 502, 20, 30, 503], 200))  # from 500 on, tokens go on with a word
    continues = np.arange(VOCABULARY) >= 500
    for sample in BertPretrainingDataset(tmp_path / "t", 64, SPECIAL, VOCABULARY, continues=continues):
        masked = sample["labels"]
        assert 1 <= (masked >= 0).sum() <= round(0.15 * int(sample["attention_mask"].sum() - 3))
        real = np.where(masked >= 0, masked, sample["input_ids"])
        for i in np.flatnonzero(real >= 500):  # told with what it goes on with
            if real[i - 1] > 3:
                assert (masked[i] >= 0) == (masked[i - 1] >= 0)


def test_a_function_of_seed_and_number(prefix):
    def read(seed, numbers):
        pairs = BertPretrainingDataset(prefix, LENGTH, SPECIAL, VOCABULARY, seed=seed)
        return [{name: value.tolist() for name, value in pairs.sample(i).items()} for i in numbers]

    assert read(5, range(40)) == read(5, range(39, -1, -1))[::-1] != read(6, range(40))
    epochs = read(5, range(10))
    assert epochs[:5] != epochs[5:]  # other masks each time


@pytest.mark.parametrize(
    ("options", "masked"),
    [
        ({"length": 4}, "length=4\n  rule: two tokens and three special"),
        ({"pair_task": "both"}, "pair_task='both'"),
        ({"share": 0}, "share=0\n"),
        ({"special": SpecialTokens(0, 1, 2)}, "special tokens are from 0 to vocabulary - 1 = 999, the mask too"),
        ({"vocabulary": 3}, "from 0 to vocabulary - 1 = 2"),
        ({"continues": [True]}, "continues has a bool for each of 1000 tokens"),
    ],
)
def test_refused(prefix, options, masked):
    given = {"length": LENGTH, "special": SPECIAL, "vocabulary": VOCABULARY} | options
    with pytest.raises(DataError, match=f"(?s)BertPretrainingDataset.*\n  seen: .*{masked}"):
        BertPretrainingDataset(prefix, **given)


def test_no_document_to_cut(tmp_path):
    with TokenFileWriter(tmp_path / "t", np.uint16) as writer:
        writer.add([1])
    with pytest.raises(DataError, match="a document has two tokens at least"):
        BertPretrainingDataset(tmp_path / "t", LENGTH, SPECIAL, VOCABULARY)
