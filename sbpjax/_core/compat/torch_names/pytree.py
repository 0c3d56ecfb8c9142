"""`torch.utils._pytree`: nested structures, by JAX's own trees."""

from __future__ import annotations

from typing import Any

import jax

PyTree = Context = Any
TreeSpec = jax.tree_util.PyTreeDef


def tree_flatten(tree, is_leaf=None):
    """Return the leaves and the structure; None is a leaf, as in PyTorch."""
    return jax.tree_util.tree_flatten(tree, lambda x: x is None or (is_leaf is not None and is_leaf(x)))


def tree_unflatten(leaves, treespec):
    """Return the structure with new leaves."""
    return jax.tree_util.tree_unflatten(treespec, leaves)


def tree_leaves(tree, is_leaf=None) -> list:
    """Return the leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_map(func, tree, *rests, is_leaf=None):
    """Return the structure with ``func`` of each leaf."""
    return jax.tree_util.tree_map(
        func, tree, *rests, is_leaf=lambda x: x is None or (is_leaf is not None and is_leaf(x))
    )


def tree_map_only(type_or_types, func, tree, is_leaf=None):
    """Return the structure with ``func`` of each leaf of a type."""
    return tree_map(lambda x: func(x) if isinstance(x, type_or_types) else x, tree, is_leaf=is_leaf)


def register_pytree_node(cls, flatten_fn, unflatten_fn, **options) -> None:
    """Make a class a node of trees.

    Args:
        cls: the class.
        flatten_fn: gives ``(children, context)``.
        unflatten_fn: makes one of ``(children, context)``.
        **options: accepted: names for files, which are not written here.
    """
    try:
        jax.tree_util.register_pytree_node(cls, flatten_fn, lambda context, children: unflatten_fn(children, context))
    except ValueError:  # JAX knows the class already
        if cls not in _registered:
            return
    _registered.add(cls)


_registered: set = set()
_register_pytree_node = register_pytree_node


def _dict_flatten_with_keys(d) -> tuple[list, list]:
    """Return pairs of keys and values, and the keys."""
    return list(d.items()), list(d.keys())
