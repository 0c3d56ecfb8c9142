"""Peak memory by part: state by its bytes, activations by what is kept, the stage that holds most."""

import pytest

from sbpjax.plan import RECOMPUTE, Layout, Step, Transformer, machine, peak

MODEL = Transformer(layers=16, width=1024, heads=8, kv_heads=8, hidden=4096, vocab=32000)


def memory(where="h100:8", sequences=64, **layout):
    return peak(Step(MODEL, Layout(**layout), machine(where), 2048, sequences))


def test_state_is_that_of_adam_in_float32():
    found = memory(data=8, micro_batch=1)
    assert found.gradients == 4 * MODEL.parameters and found.optimizer == 8 * MODEL.parameters
    assert memory(data=8, micro_batch=1, zero1=True).optimizer == MODEL.parameters


def test_fsdp_divides_the_state_and_gathers_two_blocks():
    whole, divided = (memory(micro_batch=1, **axis) for axis in ({"data": 8}, {"fsdp": 8}))
    assert divided.optimizer == whole.optimizer / 8
    gathered = 2 * 2 * (4 * 1024 * 1024 + 3 * 1024 * 4096) + 2 * 32000 * 1024
    unreduced = 4 * 32000 * 1024  # the largest gradient before its reduction, that of a table
    assert divided.parameters == 4 * MODEL.parameters / 8 == divided.gradients
    assert divided.gathered == pytest.approx(gathered + unreduced) and whole.gathered == gathered


def test_policies_are_in_the_order_of_what_they_keep():
    kept = {name: memory(data=8, micro_batch=2, recompute=name).activations for name in RECOMPUTE}
    assert kept["none"] > kept["dots"] > kept["dots_but_up"] > kept["full"]
    assert kept["none"] > kept["half_dots"] > kept["full"]
    assert kept["full"] == 16 * 2 * 2048 * 2 * 1024  # the inputs of blocks


def test_a_tensor_axis_divides_activations_unless_gathered_inputs_are_kept():
    whole = memory(data=8, micro_batch=2).activations
    assert memory(data=2, tensor=4, micro_batch=2).activations == whole / 4
    kept = memory(data=2, tensor=4, micro_batch=2, keeps_gathered=True).activations
    assert kept == whole / 4 + 3 / 4 * 16 * 2 * 2048 * (2 * 2 * 1024)


def test_the_first_stage_holds_a_micro_batch_for_each_stage():
    options = {"pipeline": 8, "micro_batch": 2, "recompute": "full", "logit_bytes": 1.0}
    few = memory(**options)
    blocks = 3  # of 16 over 8 stages: the last one has the vocabulary's products, and no block
    assert few.activations == 8 * blocks * 2 * 2048 * 2 * 1024
    assert memory(**options, schedule="gpipe").activations == 4 * few.activations


def test_the_loss_is_the_peak_of_a_large_vocabulary():
    fused, whole = (memory(data=8, micro_batch=2, logit_bytes=b).working for b in (4.0, 14.0))
    assert whole == 14 * 32000 * 2 * 2048 > fused
