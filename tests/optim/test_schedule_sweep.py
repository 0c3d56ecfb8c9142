"""Every schedule alone, nested, resumed and in graphs, against recorded facts of OneFlow 0.9 and live PyTorch."""

import functools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import optim
from tests.optim import schedule_cases as cases
from tests.optim.sweep_differences import SCHEDULES

TOLERANCE = 1e-5


@functools.cache
def facts():
    return json.loads((Path(__file__).parent / "data" / "oneflow.json").read_text())["schedules"]


def equal(ours, theirs):
    if isinstance(ours, str) or isinstance(theirs, str):
        return False
    return np.allclose(ours, theirs, rtol=TOLERANCE, atol=1e-7)


def same(ours, theirs):
    """Return whether rates are equal, and those after a resumption too."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return False
    rest = [run.get("resumed", run["rates"][cases.RESUMED :]) for run in (ours, theirs)]
    return equal(ours["rates"], theirs["rates"]) and equal(*rest)


def ours(code):
    return cases.attempt(lambda: cases.run_eager(code, flow, optim.lr_scheduler))


def listed(library, code):
    return any(d.library == library and d.covers(code) for d in SCHEDULES)


def test_oneflow():
    wrong = [c for c in cases.ONEFLOW if not same(ours(c), facts()[c]["eager"]) and not listed("oneflow", c)]
    assert not wrong


def test_torch():
    def theirs(code):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's words on its own SequentialLR
            return cases.attempt(lambda: cases.run_eager(code, torch, torch.optim.lr_scheduler))

    wrong = [code for code in cases.TORCH if not same(ours(code), theirs(code)) and not listed("torch", code)]
    assert not wrong


def test_graphs():
    codes = [code for code in cases.ONEFLOW if not isinstance(ours(code), str)]
    found = dict(zip(codes, cases.run_graph(codes, flow, optim.lr_scheduler)))
    eager = [c for c in codes if not equal(found[c], ours(c)["rates"][: cases.GRAPH_STEPS])]
    assert not eager
    recorded = [c for c in codes if facts()[c]["graph"] != "abort"]  # OneFlow's process ended there, or hung
    wrong = [c for c in recorded if not equal(found[c], facts()[c]["graph"]) and not listed("oneflow", c)]
    assert not wrong


@pytest.mark.parametrize("difference", SCHEDULES, ids=lambda d: d.reason[:40])
def test_a_listed_difference_is_one(difference):
    oneflow = difference.library == "oneflow"
    codes = [c for c in (cases.ONEFLOW if oneflow else cases.TORCH) if difference.covers(c)]
    if oneflow:
        plain = [c for c in codes if same(ours(c), facts()[c]["eager"])]
        in_graph = [c for c in plain if equal(facts()[c]["eager"]["rates"][: cases.GRAPH_STEPS], facts()[c]["graph"])]
        assert len(in_graph) < len(codes)
    else:
        run = torch.optim.lr_scheduler
        assert any(not same(ours(c), cases.attempt(lambda c=c: cases.run_eager(c, torch, run))) for c in codes)
