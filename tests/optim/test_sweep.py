"""Every optimizer under every option, and every schedule, against recorded facts of OneFlow 0.9 and live PyTorch.

The facts are in `data/oneflow.json`, written by `record_oneflow.py`. What is not equal is in `sweep_differences.py`.
"""

import functools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import optim
from tests.optim import sweep_cases as sweep
from tests.optim.sweep_differences import OPTIMIZERS

TOLERANCE = 1e-5  # relative, or absolute below 1
EVERY = 12  # of the cases in graphs the default run compiles one in so many
ALL = {**sweep.ONEFLOW, **sweep.TORCH_ONLY}
_ABSENT = ("LAMB", "Ftrl")  # in PyTorch


@functools.cache
def facts():
    return json.loads((Path(__file__).parent / "data" / "oneflow.json").read_text())


def find(name):
    return getattr(optim, name)


@functools.cache
def ours(name):
    return sweep.run_eager(ALL[name], find, lambda a: flow.nn.Parameter(flow.tensor(a)), flow.tensor)


def theirs(name):
    def clip(optimizer):
        for group in optimizer.param_groups:
            norm_type = group.get("clip_grad_norm_type", 2.0)
            torch.nn.utils.clip_grad_norm_(group["params"], group["clip_grad_max_norm"], norm_type)

    case = dict(ALL[name])
    case["options"] = {k: v for k, v in case["options"].items() if k != "do_bias_correction"}
    return sweep.run_eager(
        case, lambda n: getattr(torch.optim, n), lambda a: torch.nn.Parameter(torch.tensor(a)), torch.tensor, clip
    )


def equal(ours, theirs):
    if isinstance(theirs, str) or theirs is None:  # the name of an error
        return False
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return bool((np.abs(ours - theirs) <= TOLERANCE * np.maximum(1, np.abs(theirs))).all())


def differs(library, case):
    return [d for d in OPTIMIZERS if d.library == library and d.covers(case)]


def in_torch(case):
    return case["optimizer"] not in _ABSENT and case["options"].get("do_bias_correction", True)


@pytest.mark.parametrize("name", sweep.ONEFLOW)
def test_equals_oneflow(name):
    found = equal(ours(name), facts()["optimizers"][name]["eager"])
    assert found or differs("oneflow", ALL[name])


@pytest.mark.parametrize("name", [n for n, case in ALL.items() if in_torch(case)])
def test_equals_torch(name):
    try:
        reference = theirs(name)
    except ValueError:
        reference = "ValueError"
    assert equal(ours(name), reference) or differs("torch", ALL[name])


def _check_graph(names):
    found = sweep.run_graph([ALL[name] for name in names], flow, find)
    for name, values in zip(names, found):
        fact = facts()["optimizers"][name]
        if differs("oneflow", ALL[name]):
            assert equal(values, ours(name)), name
        else:
            assert equal(values, fact.get("graph", fact["eager"])), name


def test_a_sample_in_one_graph_equals_oneflow():
    _check_graph(list(sweep.ONEFLOW)[::EVERY] + [name for name in sweep.ONEFLOW if "lr_scale" in name])


@pytest.mark.exhaustive
@pytest.mark.parametrize("optimizer", sorted({case["optimizer"] for case in sweep.ONEFLOW.values()}))
def test_all_in_a_graph_equal_oneflow(optimizer):
    _check_graph([name for name, case in sweep.ONEFLOW.items() if case["optimizer"] == optimizer])


@pytest.mark.exhaustive
@pytest.mark.parametrize("difference", OPTIMIZERS, ids=lambda d: d.reason[:40])
def test_a_listed_difference_is_one(difference):
    oneflow = difference.library == "oneflow"
    names = [n for n, c in (sweep.ONEFLOW if oneflow else ALL).items() if difference.covers(c)]
    for name in names:
        try:
            other = facts()["optimizers"][name]["eager"] if oneflow else theirs(name)
        except ValueError:
            return
        if not equal(ours(name), other):
            return
    raise AssertionError(f"all {len(names)} cases are equal")
