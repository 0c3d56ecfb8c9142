"""BLEU: figures that sacreBLEU 2.6.0 gave with its defaults, and its cutting into words."""

import pytest

from sbpjax.train.evaluation import Bleu
from sbpjax.train.evaluation.bleu import words

PREDICTED = [
    "the cat sat on a mat",
    'He paid 3,000.50 ("net"), no?',
    "a quick-brown fox -- jumps; over & under",
    "short",
    "It's 5-6 o'clock.\n Isn't it?",
]
REFERENCES = [
    "the cat sat on the mat",
    'He paid 3,000.50 ("gross"), no?',
    "a quick brown fox jumps; over &amp; under",
    "a short one",
    "It's 5-6 o'clock, isn't it?",
]
OTHERS = [
    "on the mat the cat sat",
    "he did pay 3,000.50",
    "the quick-brown fox -- jumps over and under",
    "short",
    "It is 5 o'clock. Isn't it?",
]


def bleu(predicted, actual):
    metric = Bleu()
    metric.update(predicted, (None, actual))
    return metric.compute()["bleu"]


def test_as_sacrebleu():
    assert bleu(PREDICTED, REFERENCES) == pytest.approx(54.364328613033884, rel=1e-12)
    assert bleu(PREDICTED, list(zip(REFERENCES, OTHERS))) == pytest.approx(73.43579981883843, rel=1e-12)
    assert bleu(PREDICTED[:1], REFERENCES[:1]) == pytest.approx(53.7284965911771, rel=1e-12)
    assert bleu(["a b c d e f"], ["f e d c a b"]) == pytest.approx(21.3643503198117, rel=1e-12)
    assert bleu(["the big cat sat there"], ["a cat was there now"]) == pytest.approx(12.703318703865365, rel=1e-12)
    assert bleu(["the cat"], ["the cat"]) == 0.0  # no run of four words


def test_words_as_sacrebleu():
    assert [" ".join(words(text)) for text in PREDICTED] == [
        "the cat sat on a mat",
        'He paid 3,000.50 ( " net " ) , no ?',
        "a quick-brown fox -- jumps ; over & under",
        "short",
        "It's 5 - 6 o'clock . Isn't it ?",
    ]


def test_tokens_are_decoded():
    metric = Bleu(decode=lambda rows: [" ".join(map(str, row)) for row in rows])
    metric.update([[1, 2, 3, 4, 5]], (None, [[1, 2, 3, 4, 5]]))
    assert metric.compute() == {"bleu": pytest.approx(100)}
