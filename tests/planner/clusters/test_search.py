"""The search: its choice is the fastest of all candidates that fit, and its errors say what to change."""

import pytest

from sbpjax._core.planner.clusters.search import candidates
from sbpjax.errors import PlacementError
from sbpjax.plan import Layout, Step, Transformer, machine, peak, search

MODEL = Transformer(layers=8, width=2048, heads=16, kv_heads=8, hidden=8192, vocab=32000)
MIXTURE = Transformer(layers=8, width=1024, heads=8, kv_heads=8, hidden=2048, vocab=32000, experts=16, active=2)
POLICIES = ("none", "full")


@pytest.mark.parametrize(("model", "where"), [(MODEL, "h100:2x8"), (MIXTURE, "v5p:2x2x4"), (MODEL, "2*v5e:2x4")])
def test_the_choice_is_the_fastest_that_fits(model, where):
    there, limit = machine(where), 6e9
    found = search(model, there, 4096, 32, limit_bytes=limit)
    every = [Step(model, lay, there, 4096, 32) for lay in candidates(model, there, 32, Layout(), POLICIES)]
    fitting = [s for s in every if peak(s).total <= limit]
    assert found.candidates == len(fitting) and found.too_large == len(every) - len(fitting) > 0
    assert found.choice.seconds == min(s.seconds for s in fitting)
    assert found.unlimited.seconds == min(s.seconds for s in every)
    assert all(s.layout.chips == there.chips and s.micro_batches for s in every)
    used = [{a for a, n in s.layout.sizes().items() if n > 1} for s in (found.choice, *found.alternatives)]
    assert len(used) == 4 and all(a != b for k, a in enumerate(used) for b in used[:k])


def test_a_tighter_limit_gives_a_slower_step():
    times = [search(MODEL, machine("h100:2x8"), 4096, 64, limit_bytes=b).choice.seconds for b in (80e9, 5e9)]
    assert times[0] < times[1]


def test_experts_are_divided_only_in_a_mixture():
    dense, sparse = ({lay.expert for lay in candidates(m, machine("h100:8"), 32, Layout(), POLICIES)}
                     for m in (MODEL, MIXTURE))  # fmt: skip
    assert dense == {1} and sparse == {1, 2, 4, 8}


def test_errors_say_what_is_too_small():
    with pytest.raises(PlacementError, match=r"the smallest of \d+ layouts needs .* GB"):
        search(MODEL, machine("h100:8"), 4096, 32, limit_bytes=1e9)
    with pytest.raises(PlacementError, match="a larger batch"):
        search(MODEL, machine("h100:128x8"), 4096, 1)
