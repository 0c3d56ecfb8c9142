"""What the TPU compiler stores: of attention the products alone; for lookups and sums, copies in other tiles."""

import jax
import jax.numpy as jnp
import pytest

from sbpjax._core.planner.memory.cpu_liveness import spans_on
from sbpjax._core.planner.memory.liveness import Spans
from sbpjax._core.planner.memory.tpu_liveness import TpuSpans, in_tiles, is_transposed
from sbpjax._core.programs.normalise import normalise

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
    assert TpuSpans(program).total_by_kind().activations == pytest.approx(SQUARE, abs=NARROW)
    assert Spans(program).total_by_kind().activations > 2 * SQUARE


def test_a_product_takes_its_pointwise_operands_in(program):
    """At the fullest moment there are the scores, and the gradient of the weights, a product too."""
    assert TpuSpans(program).at_peak().total == pytest.approx(2 * SQUARE, abs=NARROW)


def test_tpus_are_counted_so(program):
    assert spans_on("tpu", program) is TpuSpans


@pytest.mark.parametrize(
    "shape, itemsize, held, transposed",
    [
        ((500_000, 64), 4, 256_000_000, True),  # 128 MB if transposed
        ((500_000, 128), 4, 256_000_000, False),
        ((64, 500_000), 4, 64 * 500_096 * 4, False),
        ((1, 1024), 4, 4096, False),  # tiles of one row
        ((8, 3, 100), 2, 8 * 4 * 128 * 2, False),
        ((2048, 16, 64), 2, 2048 * 16 * 128 * 2, False),  # transposed it would be 16 of 128 lanes
        ((5,), 4, 512, False),
    ],
)
def test_tiles(shape, itemsize, held, transposed):
    assert in_tiles(shape, itemsize) == held
    assert is_transposed(shape, itemsize) is transposed


@pytest.mark.parametrize("width, expected", [(16, 12.9), (32, 25.6), (64, 358.4)])
def test_a_lookup_holds_what_the_compiler_says(width, expected):
    """The temporaries of libtpu 0.0.42's program for v5p, in MB."""
    table, ids = jax.ShapeDtypeStruct((500_000, width), jnp.float32), jax.ShapeDtypeStruct((200_000,), jnp.int32)
    program = normalise(jax.make_jaxpr(lambda t, i: t.at[i].get(mode="promise_in_bounds").sum(0))(table, ids))
    assert TpuSpans(program).find_peak()[1] == pytest.approx(expected * 1e6, abs=1e6)  # the ids are 0.8 MB
