"""Errors of inputs on several placements: the fix names the input that has to move, in a layout that suits it."""

import re

import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import MixedTensorError

FIRST, SECOND = flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)


def rows(place):
    return flow.ones(2, 6, placement=place, sbp=S0)


def on(place):
    return nn.Linear(6, 3).to_global(place, B)


CASES = {
    "a local model moves to its data": (
        lambda: nn.Linear(6, 3)(rows(FIRST)),
        r"model\.to_global\(.*ranks=\[0, 1\]\), \[sbpjax\.sbp\.broadcast\]\)  # the parameters are local",
    ),
    "local data move to the model": (
        lambda: on(FIRST)(flow.ones(2, 6)),
        r"x\.to_global\(.*ranks=\[0, 1\]\), \[sbpjax\.sbp\.broadcast\]\)  # .*sbpjax\.tensor\(x\)",
    ),
    "an activation moves to the next stage as it is": (
        lambda: nn.Linear(3, 2).to_global(SECOND, B)(on(FIRST)(rows(FIRST))),
        r"x\.to_global\(.*ranks=\[2, 3\]\), \[sbpjax\.sbp\.split\(dim=0\)\]\)  # for input 0",
    ),
    "targets move to the logits as they are": (
        lambda: nn.functional.cross_entropy(
            on(SECOND)(rows(SECOND)), flow.zeros(2, dtype=flow.int64, placement=FIRST, sbp=S0)
        ),
        r"x\.to_global\(.*ranks=\[2, 3\]\), \[sbpjax\.sbp\.split\(dim=0\)\]\)  # for input 1",
    ),
    "targets come first": (
        lambda: rows(FIRST) * on(SECOND)(rows(SECOND)).sum(),
        r"x\.to_global\(.*ranks=\[2, 3\]\), \[sbpjax\.sbp\.split\(dim=0\)\]\)  # for input 0",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_mixed_error_fix_names_what_moves(case):
    call, fix = CASES[case]
    with pytest.raises(MixedTensorError) as raised:
        call()
    assert re.search(f"fix:  {fix}", str(raised.value)), raised.value
