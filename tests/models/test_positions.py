"""Divided positions: context and sequence parallelism train as one device does, move what is planned, and hold less."""

import numpy as np
import pytest

from sbpjax import models
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.models.llama import Llama, LlamaConfig
from sbpjax.models.positions import SplitAttention, SplitPositions
from tests.models import cases
from tests.models.cases import GPT2_SIZE, LLAMA, Step, losses

TOLERANCE = 1e-5  # relative, float32 sums in another order
LONG = 20
# Attention weights of GPT-2 are dropped in training by default, which no kernel does.
CASES = {"llama": lambda: Llama(LlamaConfig(**LLAMA)), "gpt2_kept": lambda: GPT2(GPT2Config(**GPT2_SIZE, attn_pdrop=0))}
MESHES = {
    "ring2": {"context": 2},
    "ring4": {"context": 4},
    "ulysses2": {"context": 2, "context_by": "ulysses"},
    "ulysses4": {"context": 4, "context_by": "ulysses"},
    "ring_tensor": {"context": 2, "tensor": 2},
    "ulysses_tensor": {"context": 2, "tensor": 2, "context_by": "ulysses"},
    "ring_data": {"data": 2, "context": 2},
    "ring_fsdp": {"fsdp": 2, "context": 2},
    "ring_pipeline": {"context": 2, "pipeline": 2},
    "sequence": {"tensor": 2, "sequence": True},
    "sequence4": {"tensor": 4, "sequence": True},
    "all": {"data": 2, "context": 2, "tensor": 2, "sequence": True},
}
UNEVEN = 11


@pytest.fixture(scope="module")
def alone():
    """Return the losses of one device, computed once."""
    known = {}

    def of(case, steps, length, micro_batches=1):
        key = case, steps, length, micro_batches
        if key not in known:
            known[key] = losses(case, models.Parallel(device="cpu"), steps, micro_batches, length=length)[0]
        return known[key]

    return of


@pytest.fixture(autouse=True)
def trained(monkeypatch):
    monkeypatch.setattr(cases, "TRAINED", cases.TRAINED | CASES)


def same_losses(case, mesh, steps, length, alone):
    micro_batches = 4 if "pipeline" in MESHES[mesh] else 1
    spec = models.Parallel(**MESHES[mesh], device="cpu")
    found, _, step = losses(case, spec, steps, micro_batches, length=length)
    np.testing.assert_allclose(found, alone(case, steps, length, micro_batches), rtol=TOLERANCE)
    return step


@pytest.mark.parametrize("mesh", ["ring2", "ulysses2", "sequence"])
def test_losses_are_those_of_one_device(mesh, alone):
    step = same_losses("llama", mesh, 2, UNEVEN, alone)
    traffic = step.traffic()
    assert traffic.difference() == 0
    kinds = {"ring2": "collective-permute", "ulysses2": "all-to-all", "sequence": "reduce-scatter"}
    assert traffic.planned[kinds[mesh]] == traffic.compiled[kinds[mesh]] > 0
    if mesh == "ring2":
        assert "permute" in str(step.explain())


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("length", [12, UNEVEN])
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("case", CASES)
def test_many_losses_are_those_of_one_device(case, mesh, length, alone):
    step = same_losses(case, mesh, LONG, length, alone)
    if "pipeline" not in MESHES[mesh]:
        assert abs(step.traffic().difference()) < 1e-3


def bytes_of(context, length, by="ring"):
    """Return activations and temporaries of a step on so many devices, by `graph.memory()` and by the compiler."""
    config = LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4
    )
    spec = models.Parallel(context=context, context_by=by, device="cpu")
    model = models.parallelize(Llama(config), spec)
    step = Step(model)
    tokens = spec.place(np.zeros((1, length), np.int64))
    memory = step.memory(tokens, tokens)
    return memory.activations + memory.temporaries


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("context", [2, 4, 8])
def test_memory_falls_with_the_devices(context):
    one = bytes_of(1, 8192)
    assert bytes_of(context, 8192) <= one * (1 / context + 0.1)


def test_a_spec_leaves_no_hooks_of_another():
    model = CASES["llama"]()
    models.parallelize(model, models.Parallel(context=2, tensor=2, sequence=True, device="cpu"))
    hooks = [hook for m in model.modules() for hook, *_ in m._forward_hooks.values()]
    assert hooks.count(SplitPositions((0, 1))) == 5 and len(hooks) == 6  # the embedding, two matrices of each block
    assert [h.__self__ for h, *_ in model._forward_pre_hooks.values()] == [SplitAttention(("ring", ""), 1)]
    models.parallelize(model, models.Parallel(tensor=2, device="cpu"))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
