"""Which layout comes out of an op: the recorded signatures, by planning; the values of a sample, or of all."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

import sbpjax as flow
from tests.oracle import document
from tests.oracle.differences import SIGNATURES, class_of
from tests.oracle.running import check_value
from tests.oracle.signatures import CHEAPER, EQUAL, NEEDS_VALUE, ONLY_HERE, facts, outcome

FILES = ("sig_1d_4ranks", "sig_1d_2ranks", "sig_1d_4ranks_uneven", "sig_2d_2x2", "graph_1d", "graph_2d")
AT_LEAST = 0.95  # equal or strictly cheaper, of the facts in which OneFlow's value is right
SAMPLE = 50  # facts of each file whose values the default run checks


@cache
def outcomes(name: str):
    """Return the outcome of every fact of a file."""
    return tuple(outcome(name, op, case, theirs, flow) for op, case, theirs in facts(name))


@pytest.mark.parametrize("name", FILES)
def test_layouts(name, record_property):
    found = outcomes(name)
    counts = Counter(o.kind for o in found)
    judged = [o for o in found if o.kind not in (ONLY_HERE, NEEDS_VALUE) and not o.wrong_value]
    good = sum(o.kind in (EQUAL, CHEAPER) for o in judged)
    record_property("kinds", dict(counts))
    record_property("equal_or_cheaper", good / len(judged))
    assert good >= AT_LEAST * len(judged), f"{good} of {len(judged)}: {dict(counts)}"
    unlisted = [o for o in found if o.kind not in (EQUAL, NEEDS_VALUE) and class_of(o) is None]
    assert not unlisted, unlisted[:5]


@pytest.mark.exhaustive  # all facts of all files, a minute
def test_every_class_has_facts():
    seen = {class_of(o) for name in FILES for o in outcomes(name) if o.kind not in (EQUAL, NEEDS_VALUE)}
    assert {d.name for d in SIGNATURES} == {d.name for d in seen if d is not None}


def _params(chosen):
    return [pytest.param(name, op, case, id=f"{name}-{op['op']}-{case}") for name, op, case in chosen]


def _all():
    return [(name, op, case) for name in FILES[:4] for op, case, _ in facts(name)]


def _sample():
    rng = np.random.default_rng(2)
    chosen = []
    for name in FILES[:4]:
        mine = [f for f in _all() if f[0] == name]
        wrong = [f for f in mine if f[2] in f[1].get("wrong_value", ())]
        chosen += [mine[i] for i in sorted(rng.choice(len(mine), SAMPLE, replace=False))]
        chosen += [wrong[i] for i in sorted(rng.choice(len(wrong), min(len(wrong), 10), replace=False))]
    return chosen


@pytest.mark.parametrize("name, op, case", _params(_sample()))
def test_value(name, op, case):
    check_value(name, op, case, flow)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name, op, case", _params(_all()))
def test_every_value(name, op, case):
    check_value(name, op, case, flow)


def test_document():
    assert document.PATH.read_text() == document.text(), "write it anew: python -m tests.oracle.document"
