"""`torch.utils._pytree`: nested structures of tuples, lists, dicts and registered classes, in PyTorch's order.

    leaves, spec = tree_flatten({"b": [x, None], "a": y})     # [x, None, y]: dicts keep their order, None is a leaf
    tree_unflatten(leaves, spec)                              # the dict again

JAX sorts the keys of a dict and drops None, so these are no trees of its own. A registered class becomes a node of
JAX's trees, too, so that compiled programs take and return it.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax

PyTree = Context = Any


class NodeDef(NamedTuple):
    """How a class is taken apart and made again."""

    type: Any
    flatten_fn: Callable
    unflatten_fn: Callable


class SequenceKey(NamedTuple):
    """The step into a list or tuple."""

    idx: int


class MappingKey(NamedTuple):
    """The step into a dict."""

    key: Any


class GetAttrKey(NamedTuple):
    """The step into an attribute."""

    name: str


class TreeSpec:
    """The structure of a tree: the class of its root, what remakes it, and the structures of its children.

    Args:
        type: the class; None of a leaf.
        context: what its class needs besides the children.
        children_specs: one per child.
    """

    def __init__(self, type: Any, context: Any = None, children_specs: Any = ()) -> None:
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_children = len(self.children_specs)
        self.num_leaves = sum(spec.num_leaves for spec in self.children_specs) if type is not None else 1
        self.num_nodes = 1 + sum(spec.num_nodes for spec in self.children_specs)

    def is_leaf(self) -> bool:
        """Return whether it is the structure of a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """Return the structures of the children."""
        return self.children_specs

    def child(self, index: int) -> TreeSpec:
        """Return the structure of a child."""
        return self.children_specs[index]

    def unflatten(self, leaves: Any) -> Any:
        """Return the tree with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list:
        """Return the parts of another tree, of this structure at the top, where this one has leaves."""
        if self.is_leaf():
            return [tree]
        if _get_node_type(tree) is not self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {_get_node_type(tree)!r}.")
        children, context = SUPPORTED_NODES[self.type].flatten_fn(tree)
        if self.type in _MAPPINGS:
            if set(context) != set(self.context):
                raise ValueError(f"Node keys mismatch; expected {list(self.context)}, but got {list(context)}.")
            children = [tree[key] for key in self.context]
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        return [
            part
            for spec, child in zip(self.children_specs, children, strict=True)
            for part in spec.flatten_up_to(child)
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and (self.type, self.context, self.children_specs) == (
            other.type,
            other.context,
            other.children_specs,
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_nodes, self.num_leaves))

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context!r}, {self.children_specs!r})"


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None)


def _dict_flatten(d: Any) -> tuple[list, list]:
    return list(d.values()), list(d.keys())


def _dict_unflatten(values: Any, context: Any) -> dict:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: Any) -> tuple[list, list]:
    """Return pairs of keys and values, and the keys."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d.keys())


def _is_namedtuple_instance(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


_MAPPINGS = (dict, OrderedDict)
SUPPORTED_NODES: dict[Any, NodeDef] = {
    kind: NodeDef(kind, flatten, unflatten)
    for kind, flatten, unflatten in (
        (tuple, lambda t: (list(t), None), lambda values, _: tuple(values)),
        (list, lambda t: (list(t), None), lambda values, _: list(values)),
        (dict, _dict_flatten, _dict_unflatten),
        (OrderedDict, _dict_flatten, lambda values, keys: OrderedDict(zip(keys, values, strict=True))),
        (
            defaultdict,
            lambda d: (list(d.values()), [d.default_factory, list(d)]),
            lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
        ),
        (deque, lambda d: (list(d), d.maxlen), lambda values, maxlen: deque(values, maxlen=maxlen)),
        ("namedtuple", lambda t: (list(t), type(t)), lambda values, kind: kind(*values)),
    )
}


def _get_node_type(tree: Any) -> Any:
    """Return the class under which a node is taken apart."""
    return "namedtuple" if _is_namedtuple_instance(tree) and type(tree) not in SUPPORTED_NODES else type(tree)


def tree_is_leaf(tree: Any, is_leaf: Callable | None = None) -> bool:
    """Return whether a tree is a single leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: Any, is_leaf: Callable | None = None) -> tuple[list, TreeSpec]:
    """Return the leaves and the structure."""
    leaves: list = []
    return leaves, _flatten(tree, is_leaf, leaves)


def _flatten(tree: Any, is_leaf: Callable | None, leaves: list) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return LeafSpec()
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, is_leaf, leaves) for child in children])


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """Return the structure with new leaves.

    Raises:
        ValueError: not as many as it has.
    """
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"{len(leaves)} leaves for a tree of {treespec.num_leaves}: {treespec!r}")
    rest = iter(leaves)

    def make(spec: TreeSpec) -> Any:
        if spec.is_leaf():
            return next(rest)
        return SUPPORTED_NODES[spec.type].unflatten_fn([make(child) for child in spec.children_specs], spec.context)

    return make(treespec)


def tree_leaves(tree: Any, is_leaf: Callable | None = None) -> list:
    """Return the leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Callable | None = None) -> Iterator:
    """Return an iterator of the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable | None = None) -> TreeSpec:
    """Return the structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: Any, *rests: Any, is_leaf: Callable | None = None) -> Any:
    """Return the structure with ``func`` of each leaf, and of the parts of `rests` at its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten([func(*row) for row in zip(leaves, *others, strict=True)], spec)


def tree_map_(func: Callable, tree: Any, *rests: Any, is_leaf: Callable | None = None) -> Any:
    """Call ``func`` of each leaf, and return the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(type_or_types: Any, func: Any, tree: Any = None, is_leaf: Callable | None = None) -> Any:
    """Return the structure with ``func`` of each leaf of a type, or for which a predicate is True."""
    chosen = _predicate(type_or_types)
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def _predicate(types: Any) -> Callable:
    is_types = isinstance(types, (type, tuple)) or not callable(types)
    return (lambda x: isinstance(x, types)) if is_types else types


def tree_all(pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Return whether a predicate is True of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Return whether a predicate is True of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def register_pytree_node(cls: Any, flatten_fn: Callable, unflatten_fn: Callable, **options: Any) -> None:
    """Make a class a node of trees, of JAX's too.

    Args:
        cls: the class.
        flatten_fn: gives ``(children, context)``.
        unflatten_fn: makes one of ``(children, context)``.
        **options: accepted: names for files, which are not written here.
    """
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)

    def hashable(node: Any) -> tuple:
        children, context = flatten_fn(node)
        return children, tuple(context) if isinstance(context, list) else context

    try:
        jax.tree_util.register_pytree_node(cls, hashable, lambda context, children: unflatten_fn(children, context))
    except ValueError:  # JAX knows the class already
        return


_register_pytree_node = register_pytree_node
