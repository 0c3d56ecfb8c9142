"""Tokenizers: trained, read, and the token that ends a document."""

import json
import sys

import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import tokenizer as made

TEXTS = ["the cat sat on the mat", "the dog sat on the log\n", "Ünïcödé 猫"] * 3


@pytest.fixture(scope="module")
def trained():
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    return made.train_tokenizer(TEXTS, 300)


def test_a_trained_tokenizer_gives_the_text_again(trained, tmp_path):
    assert 257 < made.vocabulary_of(trained) <= 300
    trained.save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        again = made.read_tokenizer(path)
        for text in [*TEXTS, "nothing of this\t was seen ☃"]:
            assert again.decode(again.encode(text).ids) == text
    assert len(trained.encode(TEXTS[0]).ids) < len(TEXTS[0])


def test_the_end_of_a_document(trained, tmp_path):
    assert made.end_of_document(trained, None) == trained.token_to_id("<|endoftext|>")
    for stated in ("t", {"content": "t"}):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": stated}))
        for path in (tmp_path, tmp_path / "tokenizer.json"):
            assert made.end_of_document(trained, path) == trained.token_to_id("t")
    assert made.end_of_document(trained, tmp_path, "h") == trained.token_to_id("h")
    with pytest.raises(DataError, match="none of <stop>\n.*\n  fix:  --eod-token TOKEN"):
        made.end_of_document(trained, None, "<stop>")


def test_misuse(trained, tmp_path):
    with pytest.raises(DataError, match="there is no file .*tokenizer.json"):
        made.read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match="is a file that tokenizers wrote"):
        made.read_tokenizer(tmp_path)
    with pytest.raises(DataError, match="vocabulary=256"):
        made.train_tokenizer(TEXTS, 256)


def test_without_the_package(tmp_path, monkeypatch):
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(DataError, match='pip install "tokenizers>='):
        made.read_tokenizer(tmp_path)
