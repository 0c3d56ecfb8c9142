"""Every strategy of updates of named rows, by brute force: uneven splits, ids of no row, tables in one array."""

import functools

import numpy as np
import pytest

from sbpjax._core.ops.layers.row_update import row_update
from sbpjax._core.programs.primitives import ROW_UPDATES
from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(3)


def _momentum(numbers, grad, table, state):
    state = 0.9 * state + grad
    return [table - numbers[1] * state, state]


@functools.cache
def _cases():
    found = []
    for label, lead in (("one table", ()), ("tables", (3,))):
        ids, rows = _RNG.integers(-1, 12, (17, *lead)), _RNG.standard_normal((17, *lead, 5))
        tables = [_RNG.standard_normal((*lead, 11, 5)) for _ in range(2)]

        def update(ids, rows, a, b):
            return row_update(ids, rows, (np.int64(3), np.float64(0.1)), (a, b), _momentum)

        found += equations(label, update, ids, rows, *tables, only=ROW_UPDATES)
    assert len(found) == 2
    return found


@pytest.mark.parametrize("mesh", MESHES)
def test_strategies(mesh):
    assert check(_cases(), mesh) >= 7
