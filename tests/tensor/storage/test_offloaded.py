"""Stored tensors: what the user sees is what an ordinary tensor shows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax
from sbpjax._core.compiler import conversions
from sbpjax._core.tensor.storage.offloaded import StackedParameters, is_stored
from sbpjax._core.tensor.storage.storage import drop_own_cell
from sbpjax.sbp import Layout

PLACE = sbpjax.placement("cpu", [0, 1, 2, 3])
VALUES = np.arange(24, dtype=np.float32).reshape(3, 4, 2)


def local_shelf():
    tensors = [sbpjax.zeros(4, 2).requires_grad_() for _ in range(3)]
    stack = StackedParameters(jnp.asarray(VALUES), None)
    stack.store(tensors)
    return tensors, stack


def global_shelf():
    tensors = [sbpjax.zeros(4, 2, placement=PLACE, sbp=sbpjax.sbp.broadcast).requires_grad_() for _ in range(3)]
    layout = Layout(PLACE, "S1", (3, 4, 2), "float32")
    stack = StackedParameters(conversions.from_logical(VALUES, PLACE, "S1")[0], layout)
    stack.store(tensors)
    return tensors, stack


def single_shelf():
    tensors = [sbpjax.zeros(4, 2, placement=PLACE, sbp=sbpjax.sbp.broadcast).requires_grad_()]
    stack = StackedParameters(
        conversions.from_logical(VALUES[0], PLACE, "S0")[0], Layout(PLACE, "S0", (4, 2), "float32")
    )
    stack.store(tensors)
    return tensors, stack


SHELVES = pytest.mark.parametrize("make", [local_shelf, global_shelf, single_shelf])


@SHELVES
def test_facts_are_known_without_fetching(make):
    tensors, stack = make()
    for x in tensors:
        assert tuple(x.shape) == (4, 2) and x.dtype is sbpjax.float32 and x.requires_grad and x.is_leaf
        assert x.numel() == 8 and x.ndim == 2
        if x.is_global:
            assert x.sbp == (sbpjax.sbp.broadcast,) and x.placement == PLACE
        assert is_stored(x)
    assert stack.holds(tensors)


@SHELVES
def test_reading_fetches_one_and_keeps_the_shelf(make):
    tensors, stack = make()
    np.testing.assert_array_equal(tensors[0].detach().numpy(), VALUES[0])
    assert all(is_stored(x) for x in tensors[1:])
    assert stack.holds(tensors)
    np.testing.assert_array_equal((tensors[-1] * 2).detach().numpy(), VALUES[len(tensors) - 1] * 2)
    assert stack.holds(tensors)


@SHELVES
@pytest.mark.parametrize("write", ["mul_", "fill_", "copy_", "data", "item", "view"])
def test_a_written_tensor_leaves_the_shelf(make, write):
    tensors, stack = make()
    x = tensors[0]
    expected = VALUES[0].copy()
    with sbpjax.no_grad():
        if write == "mul_":
            x.mul_(2)
            expected *= 2
        elif write == "fill_":
            x.fill_(7)
            expected[:] = 7
        elif write == "copy_":
            x.copy_(sbpjax.ones_like(x))
            expected[:] = 1
        elif write == "data":
            x.data = sbpjax.ones_like(x.detach())
            expected[:] = 1
        elif write == "item":
            x[1] = 5
            expected[1] = 5
        else:
            x.view(8).add_(1)
            expected += 1
    np.testing.assert_array_equal(x.detach().numpy(), expected)
    assert not stack.holds(tensors)
    for other, value in zip(tensors[1:], VALUES[1:]):
        np.testing.assert_array_equal(other.detach().numpy(), value)


@SHELVES
def test_parking_again_counts_a_version_and_shows_through_aliases(make):
    tensors, stack = make()
    x = tensors[0]
    alias = x.detach()
    before = x._version
    StackedParameters(stack.array * 0 + 3, stack.layout).store(tensors)
    assert x._version > before
    np.testing.assert_array_equal(alias.numpy(), np.full((4, 2), 3, np.float32))
    np.testing.assert_array_equal(x.detach().numpy(), np.full((4, 2), 3, np.float32))


@SHELVES
def test_an_alias_shares_the_shelf_and_its_writes_are_seen(make):
    tensors, stack = make()
    first, alias = tensors[0], tensors[0].detach()
    assert is_stored(first) and is_stored(alias) and alias.shape == (4, 2) and stack.holds(tensors)
    alias.add_(1)
    np.testing.assert_array_equal(first.detach().numpy(), VALUES[0] + 1)
    assert not stack.holds(tensors)


def test_gradients_reach_parked_leaves():
    tensors, _ = local_shelf()
    (tensors[1] * tensors[2]).sum().backward()
    np.testing.assert_array_equal(tensors[1].grad.numpy(), VALUES[2])
    assert tensors[0].grad is None


def test_a_change_between_forward_and_backward_is_noticed():
    tensors, stack = local_shelf()
    loss = (tensors[1] * tensors[1]).sum()
    StackedParameters(stack.array, None).store(tensors)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_fetched_arrays_are_not_kept_alive():
    tensors, stack = local_shelf()
    _ = tensors[0].shape, tensors[0].detach().numpy()
    StackedParameters(stack.array, None).store(tensors)
    jax.effects_barrier()
    assert stack.fetched[0]() is None


def test_a_cell_that_nobody_shares_is_dropped():
    x = sbpjax.zeros(4, 2)
    x.data = sbpjax.ones(4, 2)
    version = x._version
    assert x._cell is not None
    assert drop_own_cell(x) and x._cell is None and x._version == version
    np.testing.assert_array_equal(x.numpy(), np.ones((4, 2)))
    alias = x.detach()
    assert not drop_own_cell(x)
    alias.fill_(3)
    np.testing.assert_array_equal(x.numpy(), np.full((4, 2), 3))
