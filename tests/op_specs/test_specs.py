"""Every public op against PyTorch, and against itself on placements and compiled, from its spec.

By default each op runs one case of value and gradients, every second one a case of another form, which changes from
op to op and with the seed, and each one a case of values and gradients at NaN, infinities, zeros and ties.
``SBPJAX_TEST_SEEDS=0:20 make test-long`` runs all forms for a range of seeds.
"""

import os
import zlib

import pytest

from tests.op_specs.engine import SPECS
from tests.op_specs.engine.cases import AGAINST_ITSELF, AGAINST_TORCH
from tests.op_specs.engine.check import one

SEEDS = range(*[int(n) for n in os.environ.get("SBPJAX_TEST_SEEDS", "0:1").split(":")])
OTHERS = ("layouts", "inplace", "out", "double", "layouts", "method", "dtypes", "traced", "errors", "alias")


def _run(name: str, form: str, seed: int, number: int = 0) -> int:
    tally = one(SPECS[name], form, seed, number)
    assert not tally.failures, str(tally.failures[0])
    return tally.ran


@pytest.mark.parametrize("name", sorted(SPECS))
def test_op(name):
    seed = SEEDS[0]
    _run(name, "forward", seed)
    start = zlib.crc32(name.encode()) + seed
    if SPECS[name].alias_of or start // 10 % 2:  # an alias has the forms of its op
        return
    for turn in range(len(OTHERS)):  # the first form that this op has
        if _run(name, OTHERS[(start + turn) % len(OTHERS)], seed):
            break


@pytest.mark.parametrize("name", [n for n in sorted(SPECS) if not SPECS[n].alias_of])
def test_corners(name):
    _run(name, "corners", SEEDS[0])


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", [*AGAINST_TORCH, *AGAINST_ITSELF])
@pytest.mark.parametrize("name", sorted(SPECS))
def test_every_form(name, form):
    for seed in SEEDS:
        for number in range(4):
            _run(name, form, seed, number)
