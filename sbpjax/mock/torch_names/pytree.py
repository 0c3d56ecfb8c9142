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


def tree_all(pred, tree) -> bool:
    """Return whether all leaves fulfil a predicate."""
    return all(pred(x) for x in tree_leaves(tree))


def tree_any(pred, tree) -> bool:
    """Return whether any leaf fulfils a predicate."""
    return any(pred(x) for x in tree_leaves(tree))


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


def _dict_flatten(d) -> tuple[list, list]:
    """Return the values and the keys of a dict."""
    return list(d.values()), list(d.keys())


def _dict_unflatten(values, context) -> dict:
    """Return a dict of keys and values."""
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d) -> tuple[list, list]:
    """Return pairs of keys and values, and the keys."""
    return list(d.items()), list(d.keys())


KeyPath = tuple
SequenceKey = jax.tree_util.SequenceKey
MappingKey = jax.tree_util.DictKey
GetAttrKey = jax.tree_util.GetAttrKey
PyTreeSpec = TreeSpec
Leaf = Any


def tree_is_leaf(tree, is_leaf=None) -> bool:
    """Return whether a value is one leaf."""
    leaves = tree_leaves(tree, is_leaf)
    return len(leaves) == 1 and leaves[0] is tree


def tree_iter(tree, is_leaf=None):
    """Give the leaves one by one."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree, is_leaf=None) -> Any:
    """Return the structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call ``func`` with each leaf; return the structure itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only_(type_or_types, func, tree, is_leaf=None):
    """Call ``func`` with each leaf of a type; return the structure itself."""
    tree_map_only(type_or_types, func, tree, is_leaf)
    return tree


def map_only(type_or_types):
    """Return a decorator that leaves values of other types as they are."""
    return lambda func: lambda x: func(x) if isinstance(x, type_or_types) else x


def tree_all_only(type_or_types, pred, tree, is_leaf=None) -> bool:
    """Return whether all leaves of a type fulfil a predicate."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, pred, tree, is_leaf=None) -> bool:
    """Return whether any leaf of a type fulfils a predicate."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def arg_tree_leaves(*args, **kwargs) -> list:
    """Return the leaves of arguments."""
    return [*tree_leaves(args), *tree_leaves(kwargs)]


def _with_none(is_leaf):
    return lambda x: x is None or (is_leaf is not None and is_leaf(x))


def tree_flatten_with_path(tree, is_leaf=None):
    """Return pairs of path and leaf, and the structure."""
    return jax.tree_util.tree_flatten_with_path(tree, _with_none(is_leaf))


def tree_leaves_with_path(tree, is_leaf=None) -> list:
    """Return pairs of path and leaf."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """Return the structure with ``func`` of path and leaf."""
    return jax.tree_util.tree_map_with_path(func, tree, *rests, is_leaf=_with_none(is_leaf))


def keystr(kp) -> str:
    """Return a path as it is written in Python."""
    return jax.tree_util.keystr(kp)


def key_get(obj, kp):
    """Return what lies at a path."""
    for key in kp:
        if isinstance(key, GetAttrKey):
            obj = getattr(obj, key.name)
        else:
            obj = obj[key.idx if isinstance(key, SequenceKey) else key.key]
    return obj


def _is_namedtuple_instance(tree) -> bool:
    """Return whether a value is a tuple with names."""
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def _is_leaf(tree, is_leaf=None) -> bool:
    """Return whether a value is one leaf."""
    return tree_is_leaf(tree, is_leaf)


def treespec_pprint(treespec) -> str:
    """Return a structure as text."""
    return str(treespec)


SUPPORTED_NODES: dict = {list: None, tuple: None, dict: None}  # what is taken apart, beside registered classes


def _get_node_type(tree):
    """Return the class by which a value is taken apart: that of all tuples with names is one."""
    from collections import namedtuple

    return namedtuple if _is_namedtuple_instance(tree) else type(tree)


class LeafSpec:
    """The structure of one leaf, where a structure is compared with it."""

    def __new__(cls):
        return tree_structure(0)
