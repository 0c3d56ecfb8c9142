"""What a conversion hands on has memory of its own: an optimizer's step leaves it, and the other one, as they are."""

import copy

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim, sbp
from sbpjax.sbp.no_alias import copy_without_alias
from tests.support.graphs import Train

PLACES = {"four": [0, 1, 2, 3], "one": [0]}
X = np.ones((8, 4), np.float32)


def steps(model, in_graph, x):
    """Train two steps."""
    optimizer = optim.SGD(list(model.parameters()), lr=0.5)
    train = Train(model, optimizer) if in_graph else None
    for _ in range(2):
        if train is not None:
            train(x)
            continue
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.fixture(params=PLACES)
def place(request):
    return flow.placement("cpu", PLACES[request.param])


def laid_out(value, place):
    return value.to_global(place, sbp.broadcast)


@pytest.mark.parametrize("in_graph", [False, True])
class TestAStep:
    def test_of_layers_that_are_copies(self, place, in_graph):
        layer = nn.Linear(4, 4)
        model = laid_out(nn.Sequential(layer, copy.deepcopy(layer)), place)
        first, second = (m.weight.numpy().copy() for m in model)
        np.testing.assert_array_equal(first, second)
        steps(model, in_graph, laid_out(flow.tensor(X), place))
        assert not np.array_equal(model[0].weight.numpy(), model[1].weight.numpy())

    def test_leaves_the_local_tensor_that_a_parameter_was_made_of(self, place, in_graph):
        local = flow.ones(4, 4)
        layer = nn.Linear(4, 4, bias=False)
        layer.weight = nn.Parameter(laid_out(local, place))
        steps(layer, in_graph, laid_out(flow.tensor(X), place))
        np.testing.assert_array_equal(local.numpy(), np.ones((4, 4)))
        assert not np.array_equal(layer.weight.numpy(), np.ones((4, 4)))

    def test_leaves_what_was_made_of_a_parameter(self, place, in_graph):
        layer = laid_out(nn.Linear(4, 4), place)
        before = layer.weight.numpy().copy()
        other = flow.placement("cpu", [0, 1])
        made = [layer.weight.to_local(), layer.weight.to_global(other, sbp.broadcast), layer.weight.jax()]
        steps(layer, in_graph, laid_out(flow.tensor(X), place))
        for value in made:
            np.testing.assert_array_equal(value.numpy() if isinstance(value, flow.Tensor) else value, before)

    def test_of_a_local_layer_leaves_the_global_tensor(self, place, in_graph):
        whole = laid_out(flow.ones(4, 4), place)
        layer = nn.Linear(4, 4, bias=False)
        layer.weight = nn.Parameter(whole.to_local())
        steps(layer, in_graph, flow.tensor(X))
        np.testing.assert_array_equal(whole.numpy(), np.ones((4, 4)))

    def test_leaves_an_array_of_jax(self, place, in_graph):
        sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(place.devices, "x"), jax.sharding.PartitionSpec())
        array = jax.device_put(np.ones((4, 4), np.float32), sharding)
        layer = nn.Linear(4, 4, bias=False)
        layer.weight = nn.Parameter(flow.from_jax(array))
        steps(layer, in_graph, laid_out(flow.tensor(X), place))
        np.testing.assert_array_equal(array, np.ones((4, 4)))


def test_a_copy_is_made_where_a_block_could_stay():
    first, second = jax.devices()[:2]
    array = jax.device_put(np.arange(4.0), first)
    there = jax.sharding.SingleDeviceSharding(second)
    assert copy_without_alias(array, there) is array
    assert copy_without_alias(array, array.sharding) is not array
    copied = copy_without_alias(array)
    assert copied.unsafe_buffer_pointer() != array.unsafe_buffer_pointer() and copied.devices() == {first}
