"""Tables of texts: GLUE's columns, JSON lines, labels, and texts that are too long."""

import json

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import GLUE, Columns, LabelledTexts, SpecialTokens, train_tokenizer
from sbpjax.train.data.labelled_texts import _fit_texts

pytest.importorskip("tokenizers", reason="tokenizers is not installed")
WORDS = "one two three four five six seven".split()


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer([" ".join(WORDS)] * 3, 500, model="wordpiece")


TABLES = {
    "cola": ("gj04\t1\t\tone two\nbc81\t0\t*\tthree\n", [("one two", None, 1), ("three", None, 0)]),
    "sst2": ("sentence\tlabel\none two\t1\n", [("one two", None, 1)]),
    "mrpc": ("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tone\ttwo\n", [("one", "two", 1)]),
    "qqp": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\tone\ttwo\t0\n", [("one", "two", 0)]),
    "stsb": ("index\tsentence1\tsentence2\tscore\n0\tone\ttwo\t3.8\n", [("one", "two", 3.8)]),
    "mnli": ("sentence1\tsentence2\tlabel1\tgold_label\none\ttwo\tx\tneutral\n", [("one", "two", 2)]),
    "qnli": ("index\tquestion\tsentence\tlabel\n0\tone\ttwo\tnot_entailment\n", [("one", "two", 1)]),
    "rte": ('index\tsentence1\tsentence2\tlabel\n0\tone "\ttwo\tentailment\n', [('one "', "two", 0)]),
    "wnli": ("index\tsentence1\tsentence2\tlabel\n0\tone\ttwo\t1\r\n", [("one", "two", 1)]),
}


@pytest.mark.parametrize("task", GLUE)
def test_columns_of_glue(task, tokenizer, tmp_path):
    (tmp_path / "t.tsv").write_text(TABLES[task][0], newline="")
    special = SpecialTokens.from_tokenizer(tokenizer)
    found = LabelledTexts(tmp_path / "t.tsv", tokenizer, GLUE[task], 12, shuffle=False)
    assert len(found) == len(TABLES[task][1])
    for sample, (first, second, label) in zip(found, TABLES[task][1], strict=True):
        pieces = [tokenizer.encode(each, add_special_tokens=False).ids for each in (first, second) if each]
        wanted = special.join_sentences(pieces[0], pieces[1] if second else None, 12)
        assert all(np.array_equal(sample[name], wanted[name]) for name in wanted)
        assert sample["labels"] == pytest.approx(label)
    assert (found.classes == ()) == (task == "stsb")
    assert found[0]["labels"].dtype == (np.float32 if task == "stsb" else np.int64)


def test_json_lines_and_classes_of_the_file(tokenizer, tmp_path):
    rows = [{"text": "one", "kind": "b"}, {"text": "two", "kind": "a"}, {"text": "three", "kind": "b", "more": 1}]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    found = LabelledTexts(tmp_path / "t.jsonl", tokenizer, Columns("text", "kind", classes=None), 8, shuffle=False)
    assert found.classes == ("a", "b") and [int(sample["labels"]) for sample in found] == [1, 0, 1]
    order = [
        int(
            LabelledTexts(tmp_path / "t.jsonl", tokenizer, Columns("text", "kind", classes=None), 8, seed=s)[0][
                "labels"
            ]
        )
        for s in range(8)
    ]
    assert set(order) == {0, 1}


def test_long_texts_are_cut_token_by_token(tokenizer, tmp_path):
    for a in range(0, 9):
        for b in range(0, 9):
            for room in range(2, 12):
                m, n = a, b
                while m + n > room:
                    m, n = (m - 1, n) if m > n else (m, n - 1)
                first, second = _fit_texts(np.arange(a), np.arange(b), room)
                assert (first.tolist(), second.tolist()) == (list(range(m)), list(range(n))), (a, b, room)
    (tmp_path / "t.tsv").write_text("sentence\tlabel\n" + " ".join(WORDS * 3) + "\t1\n")
    sample = LabelledTexts(tmp_path / "t.tsv", tokenizer, GLUE["sst2"], 10)[0]
    assert sample["attention_mask"].all() and sample["input_ids"][-1] == SpecialTokens.from_tokenizer(tokenizer).end


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("sentences\tlabel\none\t1\n", "line 1.*\n  seen: columns sentences, label\n.*'sentence'\n.*'sentences'"),
        ("sentence\tlabel\none\n", "line 2.*\n  seen: 1 cells"),
        ("sentence\tlabel\none\t1\none\t2\n", "row 2.*\n  seen: label '2'\n  rule: classes are 0, 1"),
        ("sentence\tlabel\n", "no rows"),
    ],
)
def test_refused(content, expected, tokenizer, tmp_path):
    (tmp_path / "t.tsv").write_text(content)
    with pytest.raises(DataError, match=expected):
        LabelledTexts(tmp_path / "t.tsv", tokenizer, GLUE["sst2"], 8)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"text": "one"}\n', "line 1.*\n  seen: text\n  rule: an object has \\['label'\\]"),
        ("{\n", "line 1"),
        ("3\n", "3"),
    ],
)
def test_refused_json(content, expected, tokenizer, tmp_path):
    (tmp_path / "t.jsonl").write_text(content)
    with pytest.raises(DataError, match=expected):
        LabelledTexts(tmp_path / "t.jsonl", tokenizer, Columns("text"), 8)


def test_other_misuse(tokenizer, tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        LabelledTexts(tmp_path / "none.tsv", tokenizer, GLUE["sst2"], 8)
    with pytest.raises(DataError, match="length=2\n  rule: an input has 2 special tokens"):
        LabelledTexts(tmp_path / "none.tsv", tokenizer, GLUE["sst2"], 2)
    (tmp_path / "t.tsv").write_text("sentence1\tsentence2\tscore\none\ttwo\tmuch\n")
    with pytest.raises(DataError, match="labels are numbers"):
        LabelledTexts(tmp_path / "t.tsv", tokenizer, GLUE["stsb"], 8)
