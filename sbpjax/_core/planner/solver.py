"""Linear-program solver: HiGHS, warm-started from the last basis.

Alternation solves one mesh axis after the other, again and again: of 12,000 columns of a GPT's program a few hundred
change their cost from one round to the next, and some come or go. From scratch each solve takes as long as the first;
from the last basis of the same axis it takes a tenth.

Columns and constraints have *names* that stay from round to round, so that a basis of one problem can start another:
new ones are nonbasic, and HiGHS completes the rest. SciPy bundles HiGHS, whose own interface is private there
(``scipy.optimize._highspy``, SciPy 1.15 to 1.17); where it is missing or refuses, `scipy.optimize.milp` solves from
scratch, to the same cost.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sbpjax._core.runtime.optional_packages import LazyModule

optimize = LazyModule("scipy.optimize")


log = logging.getLogger("sbpjax.plan")


@dataclass
class Linear:
    """Minimise ``cost · x`` with ``lower ≤ matrix · x ≤ upper`` and ``0 ≤ x ≤ bound``.

    Attributes:
        cost: of each column.
        bound: of each column.
        matrix: a sparse matrix, a row per constraint.
        lower: of each constraint.
        upper: of each constraint.
        columns: the names of the columns.
        constraints: the names of the constraints.
    """

    cost: np.ndarray
    bound: np.ndarray
    matrix: Any
    lower: np.ndarray
    upper: np.ndarray
    columns: Sequence[Hashable] = ()
    constraints: Sequence[Hashable] = ()


@dataclass
class Basis:
    """The final basis of an earlier solve.

    Attributes:
        columns: name → HiGHS's status, of the columns that were not at their lower bound.
        constraints: name → HiGHS's status, of the constraints that were not basic.
    """

    columns: dict = field(default_factory=dict)
    constraints: dict = field(default_factory=dict)


@dataclass
class SolverResult:
    """The result of a solver.

    Attributes:
        x: the values of the columns, None if it gave up.
        cost: their cost.
        basis: its final basis, None if that is not known.
        iterations: of the simplex method.
    """

    x: np.ndarray | None
    cost: float
    basis: Basis | None = None
    iterations: int = 0


def solve(problem: Linear, start: Basis | None = None) -> SolverResult:
    """Return the optimum of a linear program.

    Args:
        problem: the program.
        start: the basis of an earlier solve of a similar program.
    """
    highs = _highspy()
    if highs is not None:
        try:
            found = _direct(highs, problem, start)
        except (AttributeError, TypeError, ValueError) as error:  # another version of the private interface
            log.info("HiGHS is called through SciPy: %s", error)
        else:
            if found.x is not None:
                return found
    result = branch_and_bound(problem, None, {})
    return SolverResult(result.x, result.fun if result.x is not None else np.inf)


def branch_and_bound(problem: Linear, whole: np.ndarray | None, options: dict):
    """Return the solution of a program by `scipy.optimize.milp`."""
    limits: list = [problem.lower, problem.upper]
    return optimize.milp(
        problem.cost,
        integrality=np.zeros(len(problem.cost)) if whole is None else whole,
        bounds=optimize.Bounds(0.0, problem.bound),
        constraints=optimize.LinearConstraint(problem.matrix, *limits),
        options=options,
    )


def _highspy():
    try:
        # SciPy has no public way to start from a basis, and may move this module. Use `linprog` once it takes one.
        from scipy.optimize._highspy import _core
    except ImportError:
        return None
    return _core


def _direct(h, problem: Linear, start: Basis | None) -> SolverResult:
    solver = h._Highs()
    solver.setOptionValue("output_flag", False)
    # Dual simplex, HiGHS's default: the interior point method takes twice as long here, primal simplex nine times.
    solver.passModel(_model(h, problem))
    if start is not None:
        solver.setBasis(_basis(h, problem, start))
    solver.run()
    # For any reason: the caller then solves with SciPy, from scratch.
    if solver.getModelStatus() != h.HighsModelStatus.kOptimal:
        return SolverResult(None, np.inf)
    info = solver.getInfo()
    x = np.asarray(solver.getSolution().col_value)
    basis = _extract_basis(h, problem, solver.getBasis()) if problem.columns else None
    return SolverResult(x, info.objective_function_value, basis, info.simplex_iteration_count)


def _model(h, problem: Linear):
    lp = h.HighsLp()
    rows, columns = problem.matrix.shape
    lp.num_col_, lp.num_row_ = columns, rows
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = columns, rows
    # As SciPy's CSR holds it: nothing is copied into columns.
    lp.a_matrix_.format_ = h.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = problem.matrix.indptr
    lp.a_matrix_.index_ = problem.matrix.indices
    lp.a_matrix_.value_ = problem.matrix.data
    lp.col_cost_ = problem.cost
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), problem.bound
    lp.row_lower_, lp.row_upper_ = problem.lower, problem.upper
    return lp


def _basis(h, problem: Linear, start: Basis):
    lower, basic = h.HighsBasisStatus.kLower, h.HighsBasisStatus.kBasic
    basis = h.HighsBasis()
    basis.col_status = [start.columns.get(name, lower) for name in problem.columns]
    basis.row_status = [start.constraints.get(name, basic) for name in problem.constraints]
    basis.alien = True  # it may have too many or too few basic entries: HiGHS completes it
    basis.valid = True
    return basis


def _extract_basis(h, problem: Linear, basis) -> Basis:
    lower, basic = h.HighsBasisStatus.kLower, h.HighsBasisStatus.kBasic
    return Basis(
        {n: s for n, s in zip(problem.columns, basis.col_status, strict=True) if s != lower},
        {n: s for n, s in zip(problem.constraints, basis.row_status, strict=True) if s != basic},
    )
