"""Gradient accumulation in compiled programs: gradients travel once per step, however many micro-batches there are."""

import functools
from dataclasses import replace

import pytest

from examples.gpt import data, train
from examples.gpt.model import GPTConfig
from examples.gpt.sharding import LAYOUTS
from sbpjax._core.compiler.hlo import collectives

# So many tokens per micro-batch that a weight's gradient is cheaper to move than the activations it is made of.
OPTIONS = train.Options(batch=256, block_scan=False, model=GPTConfig(context=32, layers=2, heads=4, width=32))
DATA_RANKS = {"dp": 8, "2d": 2}
SCALAR_BYTES = 64  # losses and norms, combined


@functools.cache
def program(layout, turns, **options):
    chosen = replace(OPTIONS, layout=layout, accumulate=turns, **options)
    trainer = train.Trainer(chosen, data.load_corpus(seed=1))
    trainer.train_graph.compile(*trainer.batch(0))
    return trainer.train_graph.program.compile().as_text()


def reductions(layout, turns, **options):
    """Return the sums over the data axis of more than scalars."""
    found = collectives(program(layout, turns, **options))
    kinds = ("all-reduce", "reduce-scatter")
    return [c for c in found if c.kind in kinds and c.group == DATA_RANKS[layout] and c.block_bytes > SCALAR_BYTES]


def parameters(layout):
    trainer = train.Trainer(replace(OPTIONS, layout=layout), data.load_corpus(seed=1))
    assert trainer.layout == LAYOUTS[layout]
    return list(trainer.model.parameters())


def shape_of(reduced):
    return sorted((c.kind, c.block_bytes, c.operands) for c in reduced)


@pytest.mark.slow
@pytest.mark.parametrize("layout", DATA_RANKS)
def test_the_number_of_gradient_reductions_does_not_depend_on_the_number_of_micro_batches(layout):
    expected = len(parameters(layout))
    for turns in (1, 2, 4):
        found = reductions(layout, turns)
        assert sum(c.operands for c in found) == expected  # one per parameter
        assert {c.count for c in found} == {1}  # none in the loop
    assert shape_of(reductions(layout, 2)) == shape_of(reductions(layout, 4))


@pytest.mark.slow
@pytest.mark.parametrize("layout", DATA_RANKS)
def test_in_the_loop_are_micro_batches_and_no_gradients(layout):
    """What a turn moves over the data axis is the mean of its losses, if anything."""
    loops = [c for c in collectives(program(layout, 4)) if c.count > 1 and c.group == DATA_RANKS[layout]]
    assert all(c.count == 4 and c.block_bytes <= SCALAR_BYTES for c in loops)


@pytest.mark.slow
def test_checkpointing_moves_no_gradient_into_the_loop():
    found = reductions("dp", 2, checkpointing=True)
    assert sum(c.operands for c in found) == len(parameters("dp")) and {c.count for c in found} == {1}


@pytest.mark.slow
def test_stage_1_of_zero_reduces_behind_the_loop_and_stage_2_in_every_turn():
    outside = reductions("dp", 4, zero=1)
    assert {c.count for c in outside} == {1} and sum(c.operands for c in outside) == len(parameters("dp"))
    divided = sum(p.numel() >= 1024 for p in parameters("dp"))
    inside = [c for c in reductions("dp", 4, zero=2) if c.count == 4]
    assert {c.kind for c in inside} == {"reduce-scatter"} and sum(c.operands for c in inside) == divided
