"""Messages of common mistakes contain OneFlow's sentence, recorded from OneFlow 0.9.0, which programs compare."""

import json
from pathlib import Path

import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

r = flow.randn


def il(*sizes):
    return flow.zeros(*sizes, dtype=flow.int64)


# What OneFlow 0.9.0 raises for each mistake.
FACTS = json.loads((Path(__file__).parents[1] / "oracle/data/messages.json").read_text())


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["code"])
def test_message_contains_the_sentence_of_oneflow(fact):
    with pytest.raises(Exception) as raised:
        eval(fact["code"], {"flow": flow, "nn": nn, "F": F, "r": r, "il": il})
    assert fact["message"] in str(raised.value)
