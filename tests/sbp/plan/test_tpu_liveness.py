"""What the TPU compiler stores of attention: the products alone, not the pointwise values made of them."""

import jax
import jax.numpy as jnp
import pytest

from sbpjax.sbp.normalise import normalise
from sbpjax.sbp.plan.cpu_liveness import spans_on
from sbpjax.sbp.plan.liveness import Spans
from sbpjax.sbp.plan.tpu_liveness import OnTpu

TOKENS, WIDTH = 512, 8
SQUARE = 4 * TOKENS * TOKENS
NARROW = 32 * TOKENS * WIDTH  # what is as long as a sequence, not as its square


@pytest.fixture(scope="module")
def program():
    def loss(q, k, v):
        return (jax.nn.softmax(q @ k.T, axis=-1) @ v).sum()

    args = [jax.ShapeDtypeStruct((TOKENS, WIDTH), jnp.float32)] * 3
    return normalise(jax.make_jaxpr(jax.grad(loss, (0, 1, 2)))(*args))


def test_the_scores_alone_are_kept_for_the_backward(program):
    assert OnTpu(program).ever().activations == pytest.approx(SQUARE, abs=NARROW)
    assert Spans(program).ever().activations > 2 * SQUARE


def test_a_product_takes_its_pointwise_operands_in(program):
    """At the fullest moment there are the scores, and the gradient of the weights, a product too."""
    assert OnTpu(program).at_peak().total == pytest.approx(2 * SQUARE, abs=NARROW)


def test_tpus_are_counted_so(program):
    assert spans_on("tpu", program) is OnTpu
