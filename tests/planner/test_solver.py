"""The solver: equal optima from scratch, from a basis of another problem, and through SciPy's public interface."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sbpjax._core.planner import solver
from sbpjax._core.planner.solver import Basis, Linear, branch_and_bound, solve

EXACT = 1e-9


def covering(seed, columns=60, rows=40):
    """Return a random covering problem: every constraint wants a third of what all its columns together give."""
    rng = np.random.default_rng(seed)
    matrix = (rng.random((rows, columns)) < 0.1) * rng.random((rows, columns))
    return Linear(
        rng.random(columns) + 0.1,
        np.ones(columns),
        csr_matrix(matrix),
        matrix.sum(1) / 3,
        np.full(rows, np.inf),
        [("x", i) for i in range(columns)],
        [("row", i) for i in range(rows)],
    )


def without(problem, column):
    """Return a problem with one column less and another cost of the first."""
    kept = [i for i in range(len(problem.cost)) if i != column]
    cost = problem.cost.copy()
    cost[0] *= 3
    names = [problem.columns[i] for i in kept]
    matrix = problem.matrix[:, kept]
    lower = np.asarray(matrix.sum(1)).ravel() / 3
    return Linear(cost[kept], problem.bound[kept], matrix, lower, problem.upper, names, problem.constraints)


@pytest.mark.parametrize("seed", range(4))
def test_a_start_changes_the_way_and_not_the_end(seed):
    problem = covering(seed)
    cold = solve(problem)
    expected = branch_and_bound(problem, None, {}).fun
    assert cold.cost == pytest.approx(expected, rel=EXACT)
    assert cold.x @ problem.cost == pytest.approx(expected, rel=EXACT)
    again = solve(problem, cold.basis)
    assert again.cost == pytest.approx(expected, rel=EXACT)
    assert again.iterations == 0 < cold.iterations
    other = without(problem, 7)
    warm, fresh = solve(other, cold.basis), solve(other)
    assert warm.cost == pytest.approx(fresh.cost, rel=EXACT)
    assert warm.iterations < fresh.iterations


def test_any_basis_is_taken():
    """Names that the problem does not have, none at all, or far too many basic columns: HiGHS mends it."""
    problem = covering(1)
    expected = branch_and_bound(problem, None, {}).fun
    found = solve(problem)
    everything = Basis(dict.fromkeys(problem.columns, next(iter(found.basis.columns.values()))), {})
    for basis in (Basis(), Basis({("no", 1): 1}, {}), everything):
        assert solve(problem, basis).cost == pytest.approx(expected, rel=EXACT)


def test_without_the_private_module_scipys_own_function_solves(monkeypatch):
    problem = covering(2)
    expected = solve(problem)
    for missing in (None, object()):  # not there, or with other names
        monkeypatch.setattr(solver, "_highspy", lambda missing=missing: missing)
        found = solve(problem, expected.basis)
        assert found.cost == pytest.approx(expected.cost, rel=EXACT)
        assert found.basis is None


def test_an_infeasible_problem_has_no_values():
    problem = covering(3)
    problem.lower = problem.lower * 10
    assert solve(problem).x is None
