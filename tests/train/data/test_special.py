"""Special tokens of BERT, and inputs that are put together with them."""

import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import SpecialTokens, train_tokenizer

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")


def test_one_sentence_and_two():
    special = SpecialTokens(pad=9, begin=1, end=2)
    one = special.join_sentences([5, 6], None, 6)
    assert one["input_ids"].tolist() == [1, 5, 6, 2, 9, 9] and one["attention_mask"].tolist() == [1, 1, 1, 1, 0, 0]
    assert one["token_type_ids"].tolist() == [0] * 6
    two = special.join_sentences([5], [7, 8], 8)
    assert two["input_ids"].tolist() == [1, 5, 2, 7, 8, 2, 9, 9] and two["token_type_ids"].tolist() == [
        0,
        0,
        0,
        1,
        1,
        1,
        0,
        0,
    ]
    assert two["attention_mask"].tolist() == [1] * 6 + [0] * 2
    assert special.join_sentences([5], [7, 8], 6)["attention_mask"].all()


def test_of_a_tokenizer():
    assert SpecialTokens.from_tokenizer(train_tokenizer(["a b"], 300, model="wordpiece")) == (0, 2, 3, 4)
    with pytest.raises(DataError, match="no \\[PAD\\], \\[CLS\\], \\[SEP\\]\n.*\n  fix:  --model wordpiece"):
        SpecialTokens.from_tokenizer(train_tokenizer(["a b"], 300))
