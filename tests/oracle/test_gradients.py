"""Where gradients end: `leaf.grad` lies as its leaf, for every recorded op; the values of a sample, or of all."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.sbp import placement
from tests.oracle.notation import codes_of, load, text_of
from tests.oracle.planning import plan_only, stand_in
from tests.oracle.running import check_gradients, gradients
from tests.oracle.signatures import dtype_of, evaluator, facts

FILES = ("grad_sig_1d", "grad_sig_2d")
EVERY = 8  # the default run plans every eighth fact
SAMPLE = 25  # facts of each file whose values the default run checks


def _leaves(name, op, case):
    where = placement("cpu", load(name)["meta"]["placement"])
    leaves = []
    for (kind, shape), sbp in zip(op["inputs"], case.split("|"), strict=True):
        leaves.append(stand_in(shape, dtype_of(kind), where, codes_of(sbp)))
        if kind.startswith("f32"):
            leaves[-1].requires_grad_()
    return leaves


@pytest.mark.parametrize("name", FILES)
def test_layouts(name):
    assert _check_layouts(name, list(facts(name))[::EVERY]) > 150


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FILES)
def test_every_layout(name):
    assert _check_layouts(name, list(facts(name))) > 1000


def _check_layouts(name, chosen) -> int:
    """Assert that every leaf's gradient lies as the leaf; return the number of gradients."""
    checked = 0
    for op, case, recorded in chosen:
        leaves = _leaves(name, op, case)
        with plan_only():
            gradients(evaluator(op["expr"], flow), leaves)
        finals = None if recorded.startswith("!") else [g.split(">")[-1] for g in recorded.split(" ; ")[1].split("|")]
        for i, leaf in enumerate(leaves):
            what = f"{op['expr']} at {case}, leaf {i}"
            if not leaf.requires_grad:
                assert finals is None or finals[i] == "-", what
                continue
            if leaf.grad is None:  # nothing flows to it, e.g. through a comparison; OneFlow says so too
                assert finals is None or finals[i] == "-", what
                continue
            final = text_of(leaf.grad._layout.codes)
            assert leaf.grad._layout.placement == leaf._layout.placement and final == case.split("|")[i], what
            assert finals is None or finals[i] in (final, "-"), what
            checked += 1
    return checked


def _all():
    return [(name, op, case) for name in FILES for op, case, _ in facts(name)]


def _sample():
    rng = np.random.default_rng(3)
    chosen = []
    for name in FILES:
        mine = [f for f in _all() if f[0] == name]
        chosen += [mine[i] for i in sorted(rng.choice(len(mine), SAMPLE, replace=False))]
    return chosen


def _params(chosen):
    return [pytest.param(name, op, case, id=f"{name}-{op['op']}-{case}") for name, op, case in chosen]


@pytest.mark.parametrize("name, op, case", _params(_sample()))
def test_value(name, op, case):
    check_gradients(name, op, case, flow)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name, op, case", _params(_all()))
def test_every_value(name, op, case):
    check_gradients(name, op, case, flow)
