"""Frequencies are those that `transformers` recorded; a rotation turns pairs and keeps distances."""

import json

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.models.layers import apply_rope, rope_cos_sin, rope_frequencies
from tests.models.record import DATA, ROTARY

RECORDED = json.loads((DATA / "rotary.json").read_text())


@pytest.mark.parametrize("name", ROTARY)
def test_frequencies_are_those_of_transformers(name):
    table = dict(ROTARY[name])
    found, factor = rope_frequencies(16, table.pop("rope_theta"), table)
    np.testing.assert_allclose(found, RECORDED[name]["frequencies"], rtol=1e-6)
    assert factor == pytest.approx(RECORDED[name]["factor"])
    assert found.dtype == np.float32


def test_a_score_depends_on_the_distance_alone():
    random = np.random.default_rng(0)
    q, k = (flow.tensor(random.standard_normal((1, 1, 1, 8)).astype("f")) for _ in range(2))

    def score(at_q, at_k):
        turned = [apply_rope(x, *rope_cos_sin(flow.tensor([t]), 8, 100.0)) for x, t in ((q, at_q), (k, at_k))]
        return (turned[0] * turned[1]).sum().item()

    assert score(5, 2) == pytest.approx(score(13, 10), rel=1e-5)
    assert abs(score(5, 2) - score(5, 3)) > 1e-2


def test_positions_of_each_sequence_and_of_a_mesh():
    positions = flow.tensor([[0, 1, 2], [5, 6, 7]])
    cos, sin = rope_cos_sin(positions, 4, 10.0)
    assert cos.shape == sin.shape == (2, 1, 3, 2)
    place = flow.placement("cpu", [0, 1])
    parts, _ = rope_cos_sin(positions.to_global(place, flow.sbp.split(0)), 4, 10.0)
    assert parts.sbp == (flow.sbp.split(0),)
    np.testing.assert_allclose(parts.numpy(), cos.numpy(), rtol=1e-6)
    np.testing.assert_allclose(cos[1, 0, 2].numpy(), np.cos(7 * np.array([1.0, 10**-0.5])), rtol=1e-5)


def test_bfloat16_stays():
    cos, sin = rope_cos_sin(flow.arange(3), 4, 10.0)
    assert apply_rope(flow.ones(1, 2, 3, 4, dtype=flow.bfloat16), cos, sin).dtype == flow.bfloat16


def test_fewer_numbers_turn_the_first_ones_of_a_head():
    x = flow.tensor(np.random.default_rng(0).standard_normal((1, 2, 3, 8)).astype("f"))
    cos_sin = rope_cos_sin(flow.arange(3), 4, 10.0)
    turned = apply_rope(x, *cos_sin)
    np.testing.assert_array_equal(turned[..., :4].numpy(), apply_rope(x[..., :4], *cos_sin).numpy())
    np.testing.assert_array_equal(turned[..., 4:].numpy(), x[..., 4:].numpy())
