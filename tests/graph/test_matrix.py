"""The GPT of the examples under every option of training graphs: one loss curve, whatever the layout and the options.

Options are combined so that every three values of different options meet in some configuration (`covering`). A dozen
of them run by default for a few steps; ``-m exhaustive`` runs all of them for 50.
"""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest

from examples.gpt import data, train
from examples.gpt.model import GPTConfig
from sbpjax import sbp

STEPS, ALL_STEPS = 12, 50
FLOAT32 = 2e-6  # relative: sums in another order, carried through the updates of all steps
BFLOAT16 = 2e-4  # relative: partial sums are rounded before they are added; on one device it moves the losses by 1e-4
OPTIONS = train.Options(
    layout="single",
    steps=ALL_STEPS,
    batch=16,
    warmup=5,
    model=GPTConfig(context=32, layers=4, heads=4, width=32),
)
FACTORS = {
    "layout": ("single", "dp", "tp", "2d"),
    "zero": (0, 1, 2, 3),
    "accumulate": (1, 2),
    "amp": (False, True),
    "checkpointing": (False, True),
    "block_scan": (False, True),
}
DEFAULT = [
    {"layout": "dp", "accumulate": 2},
    {"layout": "dp", "zero": 1, "checkpointing": True},
    {"layout": "dp", "zero": 3, "accumulate": 2, "block_scan": True},
    {"layout": "dp", "zero": 2, "accumulate": 4, "amp": True},  # 4 rows of a micro-batch on 8 ranks
    {"layout": "tp", "accumulate": 2, "checkpointing": True},
    {"layout": "tp", "block_scan": True, "amp": True},
    {"layout": "2d", "zero": 2, "accumulate": 2, "checkpointing": True},
    {"layout": "2d", "zero": 3, "checkpointing": True, "block_scan": True},
    {"layout": "2d", "zero": 1, "accumulate": 2, "amp": True, "checkpointing": True, "block_scan": True},
    {"layout": "single", "accumulate": 4, "checkpointing": True, "block_scan": True},
]


def covering(factors, strength=3):
    """Return configurations in which every `strength` values of different factors meet, chosen greedily."""
    names = list(factors)
    every = [dict(zip(names, values, strict=True)) for values in itertools.product(*factors.values())]
    held = [{(a, tuple(c[n] for n in a)) for a in itertools.combinations(names, strength)} for c in every]
    missing, chosen = set().union(*held), []
    while missing:
        best = max(range(len(every)), key=lambda i: len(held[i] & missing))
        missing -= held[best]
        chosen.append(every[best])
    return chosen


COVERING = covering(FACTORS)


def name_of(config):
    named = [str(config.get("layout", "single"))]
    for key, value in config.items():
        if key != "layout" and value and (key, value) != ("accumulate", 1):
            named.append(key if value is True else f"{key}{value}")
    return "-".join(named)


@functools.cache
def corpus():
    return data.load_corpus(seed=OPTIONS.seed)


def trained(config, steps):
    """Return a trainer after some steps, and their losses."""
    trainer = train.Trainer(replace(OPTIONS, **{"block_scan": False, **config}), corpus())
    return trainer, np.array([trainer.advance().item() for _ in range(steps)])


@functools.cache
def one_device(amp):
    return trained({"amp": amp}, ALL_STEPS)[1]


def deviation(config, steps):
    """Return how far the losses of a configuration are from those of one device, relative to these, at most."""
    trainer, losses = trained(config, steps)
    check_options(trainer, config)
    expected = one_device(config.get("amp", False))[:steps]
    return float(np.abs(losses / expected - 1).max())


def check_options(trainer, config):
    """Assert that the options are not without effect."""
    program = trainer.train_graph.program
    loops = [e.params["length"] for e in program.jaxpr.eqns if e.primitive.name == "scan"]
    assert (config.get("accumulate", 1) > 1) == (config.get("accumulate", 1) in loops)
    layers = OPTIONS.model.layers
    if config.get("block_scan") and config.get("accumulate", 1) == 1:
        assert any(turns in (layers, layers - 1) for turns in loops)
    casts = [e for e in program.jaxpr.eqns if e.primitive.name == "convert_element_type"]
    assert config.get("amp", False) == any(e.params["new_dtype"] == "bfloat16" for e in casts)
    moments = [t for t in trainer.optimizer.state_tensors() if tuple(t.shape) == (256, OPTIONS.model.width)]
    assert moments
    if config.get("zero") and config["layout"] in ("dp", "2d"):
        assert all(t.sbp[0] != sbp.broadcast for t in moments)
    elif config.get("layout") in ("dp", "2d"):
        assert all(t.sbp[0] == sbp.broadcast for t in moments)


@pytest.mark.exhaustive  # their curves
def test_the_curves_to_compare_with_fall_and_differ():
    exact, rounded = one_device(False), one_device(True)
    assert exact[-1] < exact[0] - 1.5 and rounded[-1] < rounded[0] - 1.5
    assert 20 * FLOAT32 < np.abs(rounded / exact - 1).max() < 0.05


@pytest.mark.exhaustive  # half a minute each
@pytest.mark.slow
@pytest.mark.parametrize("config", DEFAULT, ids=name_of)
def test_losses_are_those_of_one_device(config):
    assert deviation(config, STEPS) < (BFLOAT16 if config.get("amp") else FLOAT32)


@pytest.mark.exhaustive
@pytest.mark.parametrize("config", [*COVERING, *DEFAULT], ids=name_of)
def test_losses_of_all_steps_are_those_of_one_device(config):
    assert deviation(config, ALL_STEPS) < (BFLOAT16 if config.get("amp") else FLOAT32)


def test_every_three_values_meet():
    for (a, some), (b, others), (c, more) in itertools.combinations(FACTORS.items(), 3):
        wanted = set(itertools.product(some, others, more))
        assert wanted == {(config[a], config[b], config[c]) for config in COVERING}
    assert len(COVERING) < 50
