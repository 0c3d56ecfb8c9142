"""`torch.utils._pytree`: order of leaves, None as a leaf, structures, registered classes."""

from collections import OrderedDict, namedtuple

import pytest

from sbpjax import mock_torch

with mock_torch.enable():
    from torch.utils import _pytree as pytree

Pair = namedtuple("Pair", "left right")


def test_dicts_keep_their_order_and_none_is_a_leaf():
    tree = {"b": [1, None], "a": (2, Pair(3, OrderedDict(z=4, y=5)))}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, None, 2, 3, 4, 5] and spec.num_leaves == 6
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree and list(again) == ["b", "a"] and isinstance(again["a"][1], Pair)
    assert pytree.tree_structure({"a": 1}) == pytree.tree_structure({"a": 2}) != pytree.tree_structure({"b": 1})
    assert pytree.tree_structure(0) == pytree.LeafSpec()


def test_maps_take_several_trees():
    assert pytree.tree_map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"y": [20], "x": 10}) == {"x": 11, "y": [22]}
    assert pytree.tree_map_only(int, lambda x: -x, [1, "a"]) == [-1, "a"]
    assert pytree.tree_any(lambda x: x == 2, [1, (2,)]) and not pytree.tree_all(lambda x: x == 2, [1, (2,)])
    with pytest.raises(ValueError, match="Node keys mismatch"):
        pytree.tree_map(max, {"x": 1}, {"y": 1})
    with pytest.raises(ValueError, match="2 leaves for a tree of 1"):
        pytree.tree_unflatten([1, 2], pytree.LeafSpec())


def test_registered_classes_are_nodes_of_jax_too():
    import jax

    class Box:
        def __init__(self, *held):
            self.held = held

    pytree.register_pytree_node(Box, lambda box: (list(box.held), ["kept"]), lambda held, context: Box(*held))
    assert Box in pytree.SUPPORTED_NODES and pytree.tree_leaves([Box(1, Box(2)), 3]) == [1, 2, 3]
    assert jax.jit(lambda box: Box(*[x + 1 for x in box.held]))(Box(1, 2)).held == (2, 3)
