"""Tables of names: blocks, parts of tensors, older names; every parameter of a family has a row."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.models import Part
from sbpjax.models.gpt2.weights import WEIGHTS as GPT2
from sbpjax.models.llama.weights import WEIGHTS as LLAMA
from sbpjax.models.pretrained import family_weights
from sbpjax.models.weights import FileTensors
from tests.models.cases import TRAINED


@pytest.mark.parametrize("case", TRAINED)
def test_every_parameter_has_a_name(case):
    with flow.abstract():
        model = TRAINED[case]()
    weights = family_weights(model.config.model_type)
    parts = [weights.part(name) for name, _ in model.named_parameters()]
    assert None not in parts and len(set(parts)) == len(parts)
    assert weights.architecture(model).lower().startswith(model.config.model_type)


def test_rows_of_blocks_and_parameters():
    assert LLAMA.part("blocks.11.mlp.gate.weight") == Part("model.layers.11.mlp.gate_proj.weight")
    assert LLAMA.part("norm.weight") == Part("model.norm.weight")
    assert LLAMA.part("blocks.0.mlp.gates.weight") is None
    assert GPT2.part("blocks.3.attention.k.bias") == Part("transformer.h.3.attn.c_attn.bias", 1, 3, True)


def test_a_product_that_is_a_convolution_in_the_files():
    part, array = Part("x", ones=2), np.arange(6).reshape(2, 3, 1, 1)
    assert part.shape((2, 3)) == (2, 3, 1, 1)
    np.testing.assert_array_equal(part.read(array), array[:, :, 0, 0])
    np.testing.assert_array_equal(FileTensors([(part, flow.tensor(array[:, :, 0, 0]))])["x"].numpy(), array)


def test_parts_of_a_tensor():
    array = np.arange(24).reshape(2, 12)
    part = Part("x", 2, 3, transposed=True)
    assert part.shape((4, 2)) == (2, 12)
    np.testing.assert_array_equal(part.read(array), array[:, 8:].T)
    np.testing.assert_array_equal(Part("x", 1, 3, transposed=True).read(np.arange(6)), [2, 3])
    assert Part("x").read(array).base is not None  # a view


def test_older_names_and_what_is_left_out():
    assert GPT2.rename("h.0.ln_1.weight") == "transformer.h.0.ln_1.weight"
    assert GPT2.rename("transformer.wte.weight") == "transformer.wte.weight"
    assert GPT2.is_skipped("transformer.h.0.attn.masked_bias") and not GPT2.is_skipped(
        "transformer.h.0.attn.c_attn.bias"
    )
