"""`Optax` optimizer: wraps an optax transformation.

    optimizer = Optax(model.parameters(), optax.chain(optax.clip_by_global_norm(1.0), optax.lion(1e-4)))

The transformation sees the parameters of a group as a dict, ``{"000000": weight, "000001": bias}``, or by the names
given with them, and its state is a tree. A leaf of the tree under a parameter's key, of the parameter's shape (a
moment), is laid out like the parameter and is stored in ``optimizer.state[param]``; every other leaf (a count, a row
statistic) is broadcast and is stored in ``optimizer.shared[group]``. The group's ``"lr"`` multiplies the updates, so
schedules work on top; it is 1 unless given.

As in optax, every parameter is updated in every step: one that has no gradient counts as having zeros. One with
``requires_grad=False`` stays as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.like import zeros_like
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.storage.exchange import Run, exchange
from sbpjax._core.tensor.storage.payload import put_from
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import OpTypeError, OpValueError
from sbpjax.optim import run, saving
from sbpjax.optim.check import params_value
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.rules import MASTER
from sbpjax.sbp.algebra import broadcast


class Tree(NamedTuple):
    """State of one group: the storage of each leaf of the transformation's tree.

    Attributes:
        keys: the name of each parameter in the tree.
        treedef: the structure.
        leaves: per leaf the number of the parameter that owns it, None if it is shared, and its name there.
    """

    keys: tuple[str, ...]
    treedef: Any
    leaves: tuple[tuple[int | None, str], ...]


def start(*params: jax.Array, tx: Any, keys: tuple[str, ...]) -> tuple[jax.Array, ...]:
    """Return the leaves of the transformation's first state."""
    return tuple(jnp.asarray(leaf) for leaf in jax.tree.leaves(tx.init(dict(zip(keys, params)))))


def advance(
    *arrays: jax.Array, tx: Any, tree: Tree, moves: tuple[bool, ...], low: tuple[bool, ...], guarded: bool
) -> tuple[jax.Array, ...]:
    """Update the parameters of a group.

    Args:
        arrays: if guarded a flag that prevents any change; then the factor of the updates, the parameters,
            their gradients, float32 copies of those in `low`, and the leaves of the state.
        tx: the transformation.
        tree: the owners of the leaves.
        moves: which parameters are updated.
        low: which parameters have a float32 copy.
        guarded: whether there is a flag.

    Returns:
        The parameters, the copies, and the leaves.
    """
    skip, arrays = (arrays[0], arrays[1:]) if guarded else (None, arrays)
    lr, n, copies = arrays[0], len(tree.keys), sum(low)
    params, grads = list(arrays[1 : 1 + n]), list(arrays[1 + n : 1 + 2 * n])
    masters = iter(arrays[1 + 2 * n : 1 + 2 * n + copies])
    leaves = arrays[1 + 2 * n + copies :]
    exact = [_master(next(masters), p) if is_low else p for p, is_low in zip(params, low)]
    grads = [g.astype(x.dtype) for g, x in zip(grads, exact)]
    state = jax.tree.unflatten(tree.treedef, leaves)
    updates, state = tx.update(dict(zip(tree.keys, grads)), state, dict(zip(tree.keys, exact)))
    moved = [x + (lr * updates[key]).astype(x.dtype) if move else x for key, x, move in zip(tree.keys, exact, moves)]
    after = [x.astype(p.dtype) for x, p in zip(moved, params)]
    after += [x for x, is_low in zip(moved, low) if is_low]
    after += [jnp.asarray(new).astype(old.dtype) for new, old in zip(jax.tree.leaves(state), leaves)]
    if skip is not None:
        before = [*params, *arrays[1 + 2 * n :]]
        after = [jnp.where(skip, b, a) for b, a in zip(before, after)]
    return tuple(after)


def _master(master: jax.Array, param: jax.Array) -> jax.Array:
    return jnp.where(master.astype(param.dtype) == param, master, param.astype(master.dtype))


class Optax(Optimizer):
    """Update parameters by an optax transformation.

    Args:
        params: the parameters, ``(name, parameter)`` pairs of them, or dicts with ``"params"`` and ``"lr"``; every
            group has a state of its own.
        tx: the transformation; its updates are added, as `optax.apply_updates` does.
        lr: the updates are multiplied by this.

    Attributes:
        shared: per group the leaves of the state that belong to no parameter, by their path in the tree.

    Example:
        >>> optimizer = Optax(model.parameters(), optax.adafactor(1e-3))
    """

    def __init__(self, params: Iterable, tx: Any, lr: float = 1.0):
        if not (callable(getattr(tx, "init", None)) and callable(getattr(tx, "update", None))):
            rule = "a transformation has the functions init(params) and update(grads, state, params)"
            raise OpTypeError("Optax(params, tx)", type(tx).__name__, rule, "Optax(params, optax.adam(1e-3))")
        self.tx = tx
        self.shared: list[dict[str, Tensor]] = []
        self._trees: list[Tree | None] = []
        super().__init__(params, {"lr": lr})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        names = self.param_groups[-1].get("param_names", ())
        if len(set(names)) < len(names):
            del self.param_groups[-1]
            raise params_value(f"the names {names}", "every parameter of a group needs a name of its own")
        self._trees.append(None)
        self.shared.append({})

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        index = next(i for i, g in enumerate(self.param_groups) if g["params"] is group["params"])
        tree = self._trees[index]
        return tuple(dict.fromkeys(name for owner, name in tree.leaves if owner is not None)) if tree else ()

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        return ()

    # -- the state -------------------------------------------------------------------------------------------------

    def prepare(self, made: Callable[[Any, dict[str, Any]], object] | None = None) -> None:
        with no_grad():
            for index, group in enumerate(self.param_groups):
                self._ready_group(index)
                for param in group["params"] if made is not None else ():
                    made(param, self.state[param])

    def _ready_group(self, index: int) -> Tree:
        group = self.param_groups[index]
        params = group["params"]
        places = {run.place_of(p): p for p in params}
        if len(places) != 1:
            seen = f"group {index} with parameters on {list(places)}"
            fix = "give each placement a group: Optax([{'params': first}, {'params': second}], tx)"
            raise params_value(seen, "a transformation sees a group as a whole, so all of it is on one placement", fix)
        ((place, like),) = places.items()
        tree = self._trees[index]
        if tree is None or not self._is_whole(index, tree):
            tree = self._trees[index] = self._begin(index)
        if place is run.TRACE:
            return tree
        for i, param in enumerate(params):
            layout = place if param.layout is None else param.layout
            moved, self._laid[param] = self._laid.get(param) != layout, layout
            state = self.state[param]
            for name in [name for owner, name in tree.leaves if owner == i] + [MASTER] * (MASTER in state):
                alike = run.has_same_layout(state[name], param)
                if not alike and (moved or not run.has_same_placement(state[name], param)):
                    state[name] = run.lay_out_like(state[name], param)
            self._ready_master(param, state, bool(group.get("master_weights")))
        for name, tensor in self.shared[index].items():
            if not run.has_same_placement(tensor, like):
                self._write_shared(index, name, tensor)
        return tree

    def _is_whole(self, index: int, tree: Tree) -> bool:
        """Return whether every leaf exists: the state may have been cleared."""
        params, shared = self.param_groups[index]["params"], self.shared[index]
        return all(name in (shared if owner is None else self.state[params[owner]]) for owner, name in tree.leaves)

    def _ready_master(self, param: Tensor, state: dict[str, Tensor], wanted: bool) -> None:
        if not (wanted and run.is_low(param.dtype)):
            state.pop(MASTER, None)
        elif MASTER not in state:
            for name, tensor in state.items():
                if tensor.dtype == param.dtype:
                    state[name] = tensor.to(dtypes.float32)
            state[MASTER] = run.master_of(param)

    def _begin(self, index: int) -> Tree:
        """Make the first state of a group."""
        group = self.param_groups[index]
        params = group["params"]
        keys = tuple(group.get("param_names") or (f"{i:06d}" for i in range(len(params))))
        masters = group.get("master_weights")
        exact = [run.master_of(p) if masters and run.is_low(p.dtype) else p for p in params]
        shapes = {k: jax.ShapeDtypeStruct(tuple(p.shape), p.dtype.np) for k, p in zip(keys, exact)}
        found, treedef = jax.tree_util.tree_flatten_with_path(jax.eval_shape(self.tx.init, shapes))
        leaves = tuple(_place(path, leaf, keys, shapes) for path, leaf in found)
        if not leaves:
            return Tree(keys, treedef, ())
        everywhere = None
        if params[0].is_global:
            everywhere = (broadcast,) * len(params[0].placement.hierarchy)
        pins = [everywhere if owner is None else params[owner].sbp for owner, _ in leaves] if everywhere else None
        op = op_of(start, (("tx", self.tx), ("keys", keys)))
        tensors = dispatch.run(op, tuple(exact), None if pins is None else tuple(pins))
        for (owner, name), tensor in zip(leaves, tensors):
            (self.shared[index] if owner is None else self.state[params[owner]])[name] = tensor
        return Tree(keys, treedef, leaves)

    def _leaf(self, index: int, owner: int | None, name: str) -> Tensor:
        store = self.shared[index] if owner is None else self.state[self.param_groups[index]["params"][owner]]
        return store[name]

    # -- the step --------------------------------------------------------------------------------------------------

    def _update(self) -> None:
        runs: list[Run] = []
        for index, group in enumerate(self.param_groups):
            params = group["params"]
            if any(p.grad is not None for p in params):
                runs += self._advance(index, params, self._ready_group(index), group["lr"])
        exchange(*runs)

    def _advance(self, index: int, params: list[Tensor], tree: Tree, lr: Any) -> list[Run]:
        moves = tuple(p.requires_grad for p in params)
        low = tuple(MASTER in self.state[p] for p in params)
        grads = [zeros_like(p.detach()) if p.grad is None else p.grad for p in params]
        masters = [self.state[p][MASTER] for p, is_low in zip(params, low) if is_low]
        rest = [*masters, *(self._leaf(index, owner, name) for owner, name in tree.leaves)]
        head: list[Any] = [] if self._skip is None else [self._skip]
        head.append(float(lr) if isinstance(lr, int) else lr)
        inputs = [*head, *params, *grads, *rest]
        first = len(head) + 2 * len(params)
        donated = [*range(len(head), len(head) + len(params)), *range(first, first + len(rest))]
        static = (("tx", self.tx), ("tree", tree), ("moves", moves), ("low", low), ("guarded", self._skip is not None))
        return run.run_of(advance, static, inputs, [*params, *rest], donated, params[0])

    # -- saving, and for compiled programs -------------------------------------------------------------------------

    def state_tensors(self) -> list[Tensor]:
        return super().state_tensors() + [t for shared in self.shared for _, t in sorted(shared.items())]

    def static_options(self) -> tuple:
        return (*super().static_options(), self.tx)

    def state_dict(self) -> dict[str, Any]:
        """Return the dict of `Optimizer.state_dict`, and under ``"shared"`` the leaves that belong to no parameter."""
        return {**super().state_dict(), "shared": [dict(shared) for shared in self.shared]}

    def snapshot(self) -> Callable[[], None]:
        undo_rest = super().snapshot()
        shared, trees = [dict(s) for s in self.shared], list(self._trees)

        def undo() -> None:
            undo_rest()
            self.shared, self._trees = shared, trees

        return undo

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.prepare()
        rest = {k: v for k, v in state_dict.items() if k != "shared"}
        saving.check(self, rest)
        loaded = state_dict.get("shared", [])
        seen = [{name: tuple(t.shape) for name, t in shared.items()} for shared in loaded]
        wanted = [{name: tuple(t.shape) for name, t in shared.items()} for shared in self.shared]
        names = [set(self.state[p]) - {MASTER} for group in self.param_groups for p in group["params"]]
        given = [set(rest["state"].get(i, ())) - {MASTER} for i in range(len(names))]
        if seen != wanted or names != given:
            rule = f"this transformation's state has the shared leaves {wanted} and per parameter {names}"
            fix = "make it with the transformation it was saved with"
            raise OpValueError("Optax.load_state_dict", f"{seen} and {given}", rule, fix)

    def _take_state(self, state_dict: dict[str, Any]) -> None:
        super()._take_state({k: v for k, v in state_dict.items() if k != "shared"})
        with no_grad():
            for index, shared in enumerate(state_dict["shared"]):
                for name, tensor in shared.items():
                    self._write_shared(index, name, tensor.detach().clone())

    def _write_shared(self, index: int, name: str, value: Tensor) -> None:
        """Write a shared leaf to the group's place; in place, as compiled programs hold the tensor."""
        value = run.broadcast_like(value, self.param_groups[index]["params"][0])
        put_from(self.shared[index][name], value)


def _place(path: tuple, leaf: Any, keys: tuple[str, ...], shapes: dict[str, Any]) -> tuple[int | None, str]:
    """Return the parameter that owns a leaf of the state, None if none does, and the leaf's name there."""
    name = jax.tree_util.keystr(path)
    owners = [i for i, entry in enumerate(path) if isinstance(entry, jax.tree_util.DictKey) and entry.key in shapes]
    if not owners:
        return None, name
    at = owners[-1]
    key = path[at].key
    if tuple(leaf.shape) != tuple(shapes[key].shape):
        return None, name
    return keys.index(key), jax.tree_util.keystr(path[:at] + path[at + 1 :]) or "state"


def from_optax(transformation: Any, params: Iterable | None = None, lr: float = 1.0) -> Optax | Callable[..., Optax]:
    """Return an optimizer of an optax transformation, or without `params` the function that makes one of them.

    Args:
        transformation: an `optax.GradientTransformation`.
        params: the parameters, see `Optax`.
        lr: the updates are multiplied by this.

    Example:
        >>> optimizer = from_optax(optax.lion(1e-4))(model.parameters())
    """
    if params is None:
        return functools.partial(Optax, tx=transformation, lr=lr)
    return Optax(params, transformation, lr)
