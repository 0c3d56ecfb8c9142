"""Inputs that the host works out of a step's arguments: given, computed, in every layout; and where there are none."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphError
from sbpjax.graph import host_input


class Modulo:
    """Answers with the keys modulo a number, and counts how it is asked."""

    def __init__(self, number=5):
        self.number, self.requested = number, []

    def prepare(self, requests, whole_step):
        self.requested.append(([r.note for r in requests], whole_step))
        return [self._answer(r.keys) for r in requests]

    def _answer(self, keys):
        local = (keys.to_local() if keys.is_global else keys).numpy()
        made = flow.tensor((local % self.number).astype(np.int32))
        return made.to_global(keys.placement, keys.sbp) if keys.is_global else made


KEYS = np.arange(12).reshape(4, 3) * 7
SPLIT, WHOLE = flow.sbp.split(0), flow.sbp.broadcast


@pytest.mark.parametrize("sbp", [None, SPLIT, flow.sbp.split(1), WHOLE])
def test_given_and_computed_keys(sbp):
    owner = Modulo()

    class Step(nn.Graph):
        def build(self, ids, x):
            twice = host_input(owner, (ids * 2).flip(0), "computed")
            return host_input(owner, ids, "given") * 100 + twice + x

    step = Step()
    for shift in (0, 1, 2):
        ids, x = flow.tensor(KEYS + shift), flow.zeros(1, 3, dtype=flow.int32)
        if sbp is not None:
            ids, x = (t.to_global(flow.placement("cpu", [0, 1]), s) for t, s in ((ids, sbp), (x, WHOLE)))
        wanted = (KEYS + shift) % 5 * 100 + (KEYS + shift)[::-1] * 2 % 5
        np.testing.assert_array_equal(step(ids, x).numpy(), wanted)
    assert owner.requested == [(["computed", "given"], True)] * 3


def test_eager_code_asks_at_once_and_compile_before_each_call():
    owner = Modulo(3)
    ask = lambda ids: host_input(owner, ids) + 1  # noqa: E731
    assert ask(flow.tensor([3, 4, 5])).tolist() == [1, 2, 3]
    assert owner.requested == [([None], False)]
    compiled = flow.compile(ask)
    assert [compiled(flow.tensor([i])).item() for i in (4, 5, 6)] == [2, 3, 1]
    assert owner.requested[1:] == [([None], True)] * 3


def test_owners_are_asked_once_each():
    one, two = Modulo(2), Modulo(3)

    class Step(nn.Graph):
        def build(self, ids):
            return host_input(one, ids, 1) + host_input(two, ids, 2) + host_input(one, ids, 3)

    ids = np.arange(6)
    assert Step()(flow.tensor(ids)).tolist() == (ids % 2 * 2 + ids % 3).tolist()
    assert one.requested == [([1, 3], True)] and two.requested == [([2], True)]


def test_a_further_signature_has_lookups_of_its_own():
    owner = Modulo()

    class Step(nn.Graph):
        def build(self, ids):
            return host_input(owner, ids) * 2

    step = Step()
    for n in (3, 5, 3):
        assert step(flow.tensor(np.arange(n))).tolist() == (np.arange(n) % 5 * 2).tolist()


def test_where_there_are_none():
    owner = Modulo()

    class Random(nn.Graph):
        def build(self, x):
            return host_input(owner, x + flow.randint(0, 3, (2,)))

    with pytest.raises(GraphError, match="keys that depend on parameters, buffers or random numbers"):
        Random()(flow.tensor([1, 2]))
    with pytest.raises(GraphError, match="a transform"):
        flow.func.vmap(lambda x: host_input(owner, x))(flow.tensor([1, 2]))
