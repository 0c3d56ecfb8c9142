"""Strings that end a sequence: the first token that completes one, in the text of the new tokens."""

import json

import pytest

from sbpjax import models
from sbpjax.errors import OpValueError
from sbpjax.models.stopping import StopStrings
from tests.models.record import DATA, NEW_TOKENS, PROMPTS

RECORDED = json.loads((DATA / "generated.json").read_text())


def text(tokens):
    """Return a letter for each token, and two for those from 26 on."""
    return "".join(chr(97 + t) if t < 26 else f"Z{chr(39 + t)}" for t in tokens)


@pytest.mark.parametrize(
    "strings, tokens, want",
    [
        (["c"], [0, 1, 2, 2], 3),
        (["bc", "abc"], [0, 1, 2, 3], 3),
        (["ZC", "x"], [5, 27, 27], None),
        (["ZB"], [1, 27, 4], 2),
        (["aZB"], [0, 27, 4], 2),
        ([], [1, 2], None),
    ],
)
def test_the_first_token_that_completes_a_string(strings, tokens, want):
    assert StopStrings(strings, text).end(tokens) == want


@pytest.mark.parametrize("strings", ["ab", ["a", ""]])
def test_wrong_strings_are_one_error(strings):
    with pytest.raises(OpValueError, match="stop strings are some strings that are not empty"):
        StopStrings(strings, text)


def test_strings_need_a_decoder():
    with pytest.raises(OpValueError, match="decode=None"):
        models.Generator(models.from_pretrained(DATA / "gpt2"), stop_strings=["a"])


def test_generation_ends_behind_a_string():
    model, recorded = models.from_pretrained(DATA / "gpt2"), RECORDED["gpt2"]["greedy"]
    string = text(recorded[0])[2:4]
    found = models.generate(model, PROMPTS, NEW_TOKENS, stop_strings=[string, "nowhere"], decode=text)
    ends = [next((i for i in range(len(row)) if string in text(row[:i])), len(row)) for row in recorded]
    assert found == [row[:end] for row, end in zip(recorded, ends)] and ends[0] < NEW_TOKENS


def test_a_string_of_one_token_is_a_stop_token():
    model, recorded = models.from_pretrained(DATA / "llama"), RECORDED["llama"]
    stop, options = recorded["stop"], {"beams": 3, "length_penalty": 0.5}
    by_token = models.generate(model, PROMPTS, NEW_TOKENS, stop=[stop], **options)
    assert models.generate(model, PROMPTS, NEW_TOKENS, stop_strings=[text([stop])], decode=text, **options) == by_token


def test_generation_is_over_when_all_have_ended():
    generator = models.Generator(models.from_pretrained(DATA / "gpt2"), stop_strings=["*"], decode=lambda t: "*")
    calls = []
    (_, read, step, _) = generator._programs(*_padded(), 64)
    generator._graphs[len(PROMPTS), 64] = (
        *generator._graphs[len(PROMPTS), 64][:2],
        lambda: calls.append(0) or step(),
        None,
    )
    assert [len(row) for row in generator._sample(*_padded(), 64, 40)] == [1] * len(PROMPTS)
    assert len(calls) == 7


def _padded():
    import numpy as np

    return np.ones((2, len(PROMPTS), 16), np.int64)
