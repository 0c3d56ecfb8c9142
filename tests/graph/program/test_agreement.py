"""Ranks compare a program before they run it; threads act as ranks."""

import pytest

import sbpjax as flow
from sbpjax import errors


class Step(flow.nn.Graph):
    def __init__(self, scale):
        super().__init__()
        flow.manual_seed(0)
        where = flow.placement.all("cpu")
        self.model = flow.nn.Sequential(flow.nn.Linear(4, 3), flow.nn.Linear(3, 2))
        self.model.to_global(where, flow.sbp.broadcast)
        self.scale = scale
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1))

    def build(self, x):
        loss = (self.model(x) * self.scale).square().mean()
        loss.backward()
        return loss


def step(rows=4, scale=2.0):
    where = flow.placement.all("cpu")
    return Step(scale)(flow.ones(rows, 4, placement=where, sbp=flow.sbp.split(0))).item()


def test_equal_programs_run():
    losses = flow.simulate(ranks=2)(step)()
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    "name, values, words",
    [
        ("rows", (4, 6), ["first difference is input", "float32[4, 4]", "float32[6, 4]", "on ranks [0]", "[1]"]),
        ("scale", (2.0, 4.0), ["first difference is line", "2.0", "4.0", "on rank 0", "on rank 1"]),
    ],
)
def test_a_different_program_is_an_error_on_all_ranks(name, values, words):
    @flow.simulate(ranks=2)
    def main():
        with pytest.raises(errors.AgreementError) as raised:
            step(**{name: values[flow.env.get_rank()]})
        return str(raised.value)

    texts = main()
    for text in texts:
        assert all(word in text for word in words) and "2 programs" in text and "\n  fix:  " in text, text


def test_a_rank_that_runs_nothing_is_missed():
    @flow.simulate(ranks=2)
    def main():
        if flow.env.get_rank() == 0:
            step()

    with pytest.raises(errors.LostRankError, match=r"rank 0 waits at .*; ranks that ended: \[1\]"):
        main()
