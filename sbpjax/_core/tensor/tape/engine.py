"""Backward engine: walks the tape from outputs to leaves in reverse order and accumulates gradients.

A node runs when all cotangents of its outputs have arrived: the number of its consumers within the walk is counted
first. Among the nodes that are ready the one recorded last runs first, and a leaf's accumulation runs as soon as its
gradient is complete, so hooks fire in PyTorch's order.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from sbpjax._core.compiler.eager import recompile_log
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.local import LocalNode
from sbpjax._core.tensor.dispatch.placed import match_leaf_layout
from sbpjax._core.tensor.dispatch.traced import TracedNode
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.nodes.op_node import OpNode
from sbpjax._core.tensor.tape.row_grad import RowGrad, accumulate_grad
from sbpjax.errors import AutogradError

from ..nodes.node import AccumulateGrad
from . import anomaly


def walk(
    roots: list, create_graph: bool, retain_graph: bool, capture: dict | None = None, others: bool = False
) -> None:
    """Run backward.

    ``capture``: ``{(node, idx): None}`` to be filled with the gradients arriving there, instead of writing
    ``.grad``.
    ``others``: with ``capture``, still write the ``.grad`` of leaves that are not captured.
    """
    pending = _count(roots)
    # `grad` must not run nodes that lead to no requested input: an unrelated Function may fail, and does so in
    # PyTorch only if it is on the path.
    wanted = None if capture is None or others else leading_to(roots, {node for node, _ in capture})
    buffers: dict = {}
    # The node that was recorded last comes first, of those whose cotangents are complete. So hooks run in the order
    # that PyTorch has.
    ready: list = []  # a heap of (-seq, node)
    leaves: list = []
    for node, idx, grad in roots:
        _put(buffers, node, idx, grad)
    # A root that another root leads to waits for the gradients from there.
    for node in {id(n): n for n, _, _ in roots}.values():
        if not pending[node]:
            leaves.append(node) if node.__class__ is AccumulateGrad else heappush(ready, (-node.seq, node))
    before, walks = mode.grad, mode.walks
    # A hook or a Function runs ops in here: they are recorded if, and only if, the backward is to be differentiated.
    mode.grad = create_graph
    mode.walks = walks + 1
    recompile_log.steps.done += 1
    done = False
    try:
        while True:
            # Before the next node: an optimizer in a hook on a leaf may update, and free, a gradient while the rest of
            # the backward still runs.
            if leaves:
                for leaf in leaves:
                    _run(leaf, buffers.pop(leaf, None), create_graph, retain_graph, capture, wanted)
                leaves.clear()
            if not ready:
                break
            node = heappop(ready)[1]
            # Popped, not read: cotangents are let go as soon as their node has run.
            grads = buffers.pop(node, None)
            added: tuple = ()
            if grads is not None and capture is None and node.hooks is None:  # as `_run` without hooks
                if node.__class__ is LocalNode and not create_graph:
                    added, held = _find_waiting_gradients(node, buffers)
                    results = node.backward_onto(grads, added, held) if added else node.backward(grads, False)
                else:
                    results = _backward(node, grads, create_graph)
                if not retain_graph:
                    node.release()
            else:
                results = _run(node, grads, create_graph, retain_graph, capture, wanted)
            if anomaly.checks and results is not None:
                anomaly.check(node, results)
            idxs = node.idxs
            for k, child in enumerate(node.edges):
                if child is None:
                    continue
                if results is not None:
                    grad = results[k]
                    if grad is not None:
                        slots = buffers.get(child)
                        if slots is None:
                            slots = buffers[child] = [None] * child.n_out
                        idx = idxs[k]
                        held = slots[idx]
                        slots[idx] = grad if held is None or k in added else held + grad
                # Also for a child without a gradient: else it and the nodes after it would wait for ever.
                left = pending[child] - 1
                pending[child] = left
                if not left:
                    if child.__class__ is AccumulateGrad:
                        leaves.append(child)
                    else:
                        heappush(ready, (-child.seq, child))
        done = True
    finally:
        mode.grad, mode.walks = before, walks  # no call between the two: a signal handler cannot interrupt here
        if not done and not mode.walks:
            mode.ends = None
    if mode.ends is not None and capture is None:
        run_end_callbacks()


def register_end_callback(key, call: Callable[[], None]) -> None:
    """Call a function once after the backward that is under way, when all gradients are written; for hooks.

    Args:
        key: of several functions under one key the first is called.
        call: the function; not called if the backward fails, or writes no ``.grad`` (`sbpjax.autograd.grad`).
    """
    if mode.ends is None:
        mode.ends = {}
    mode.ends.setdefault(key, call)


def run_end_callbacks() -> None:
    """Call the functions of `register_end_callback`, unless this walk is nested in another one."""
    if mode.walks:
        return
    ends, mode.ends = mode.ends, None
    for call in (ends or {}).values():
        call()


def drop_end_callbacks() -> None:
    """Drop the functions of `register_end_callback`, unless this walk is nested in another one."""
    if not mode.walks:
        mode.ends = None


def _backward(node, grads: list, create_graph: bool) -> tuple:
    """Run the backward of a node; one that is to be recorded runs as an op itself."""
    if not create_graph or not isinstance(node, (OpNode, TracedNode)):
        return node.backward(grads, create_graph)
    op, inputs = node.as_op(grads)
    if op is None:
        return (None,) * len(node.edges)
    outs = dispatch.run(op, inputs)
    return node.convert_grads(outs if isinstance(outs, tuple) else (outs,))


# The fused addition saves a call per gradient that meets another: 4 % of a step of `benchmarks/eager.py`.
_NOTHING = ((), ())


def _find_waiting_gradients(node: LocalNode, buffers: dict) -> tuple:
    """Return which gradients of a node will be added to a waiting one, and those."""
    # The node's own program adds them then. None of a node of several outputs, of one that hands on cotangents as they
    # come, or where an input is a gradient's place twice.
    entry = node.entry
    if entry.n_out != 1 or entry.passed is not None:
        return _NOTHING
    places, arrays = [], []
    edges, idxs = node.edges, node.idxs
    for k, child in enumerate(edges):
        slots = buffers.get(child)
        if slots is None:
            continue
        held = slots[idxs[k]]
        if held is None:
            continue
        if held._kind or held._cell is not None:
            return _NOTHING
        places.append(k)
        arrays.append(held._array)
    # ``x * x``: both gradients go to the same place, and the waiting gradient would be added twice.
    if len(places) > 1 and len({(edges[k], idxs[k]) for k in places}) < len(places):
        return _NOTHING
    return (tuple(places), arrays) if places else _NOTHING


def _put(buffers: dict, node, idx: int, grad) -> None:
    slots = buffers.get(node)
    if slots is None:
        slots = buffers[node] = [None] * node.n_out
    slots[idx] = grad if slots[idx] is None else slots[idx] + grad


def _count(roots: list) -> dict:
    """Return how many edges of the walk lead to each node."""
    pending: dict = {}
    stack = list({id(node): node for node, _, _ in roots}.values())
    # A root may also be reached from another root.
    for node in stack:
        pending[node] = 0
    while stack:
        for child in stack.pop().edges:
            if child is not None:
                count = pending.get(child)
                if count is None:
                    pending[child] = 1
                    stack.append(child)
                else:
                    pending[child] = count + 1
    return pending


def leading_to(roots: list, targets: set) -> set:
    """Return the nodes from which a target can be reached, targets included."""
    order, seen = [], set()
    # Iterative: a recurrent net of a thousand steps is deeper than Python's stack.
    stack = [(node, False) for node, _, _ in roots]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        stack.append((node, True))
        stack.extend((child, False) for child in node.edges if child is not None and child not in seen)
    found = set()
    for node in order:
        if node in targets or any(child in found for child in node.edges if child is not None):
            found.add(node)
    return found


def _run(node, grads, create_graph: bool, retain_graph: bool, capture, wanted):
    """Run the hooks and the backward of one node; return the gradients of its edges, None if there are none."""
    if grads is None or (wanted is not None and node not in wanted):
        return None
    hooks = node.hooks
    ends = False
    if capture is not None:
        ends = _is_walk_end(node, capture, wanted)
        # where the walk continues, the gradient before the hooks is captured, as in PyTorch
        if not ends:
            _capture(node, grads, capture)
    if hooks is not None:
        grads = _run_pre_hooks(hooks, grads)
    if ends and capture is not None:
        _capture(node, grads, capture)
        return None
    if node.__class__ is AccumulateGrad:
        _accumulate(node, grads[0], create_graph)
        return None
    results = _backward(node, grads, create_graph)
    if not retain_graph:
        node.release()
    if hooks is not None and hooks.post:
        for hook in list(hooks.post.values()):
            changed = hook(results, tuple(grads))
            if changed is not None:
                results = changed if isinstance(changed, tuple) else (changed,)
    return results


def _is_walk_end(node, capture: dict, wanted) -> bool:
    """Return whether a captured walk has nothing to do beyond this node."""
    if wanted is None:
        return node.__class__ is AccumulateGrad and (node, 0) in capture
    return node.__class__ is AccumulateGrad or not any(c in wanted for c in node.edges if c is not None)


def _capture(node, grads: list, capture: dict) -> None:
    for idx, grad in enumerate(grads):
        if (node, idx) in capture:
            capture[node, idx] = grad


def _run_pre_hooks(hooks, grads: list) -> list:
    """Run the hooks on the outputs of a node, then those on the node, then keep retained gradients."""
    for idx, table in hooks.outputs.items():
        for hook in list(table.values()):
            if grads[idx] is None:
                continue
            changed = hook(grads[idx])
            if changed is not None:
                if tuple(changed.shape) != tuple(grads[idx].shape):
                    raise _resized_error(hook, grads[idx], changed)
                grads[idx] = changed
    # A copy: a hook may remove itself.
    for hook in list(hooks.pre.values()):
        changed = hook(tuple(grads))
        if changed is not None:
            grads = list(changed) if isinstance(changed, tuple) else [changed]
    for idx, ref in hooks.retain.items():
        tensor = ref()
        if tensor is not None and grads[idx] is not None:
            own = tensor._own_meta()
            own.grad = grads[idx] if own.grad is None else own.grad + grads[idx]
    return grads


def _resized_error(hook, grad, changed) -> AutogradError:
    name = getattr(hook, "__name__", hook)
    return AutogradError(
        "backward()",
        f"hook {name!r} turned a gradient of shape {list(grad.shape)} into {list(changed.shape)}",
        "a hook may change the values of a gradient, not its shape",
        "return a tensor of the gradient's shape, or None",
    )


def _accumulate(node: AccumulateGrad, grad, create_graph: bool) -> None:
    """Add a gradient to a leaf's ``.grad``, in the leaf's own layout."""
    tensor = node.ref()
    if tensor is None or grad is None:
        return
    if grad.__class__ is RowGrad:
        _accumulate_rows(tensor, grad)
        run_post_hooks(node, tensor)
        return
    if grad._layout is not tensor._layout:
        grad = match_leaf_layout(grad, tensor)
    if mode.touch is not None:
        mode.touch(tensor)
    own = tensor._own_meta()
    if own.grad is None:
        # A handle of the leaf's own: the tensor that was passed along may be held, and written, by a hook.
        own.grad = grad if create_graph else wrap_any(grad._fresh()._array, grad._layout)
    elif create_graph:
        own.grad = own.grad + grad
    elif own.grad.__class__ is RowGrad:
        own.grad = accumulate_grad(own.grad, grad, tensor)
    # The array of `zero_grad` is known to be zero: the gradient replaces it, and the user's handle to ``w.grad`` sees
    # it.
    elif own.zeroed is not None and own.grad._array is own.zeroed:
        own.grad._set(grad._fresh()._array, grad._layout)
    else:
        total = match_leaf_layout(own.grad + grad, tensor)
        # Into the same handle, as in PyTorch: `g = w.grad` before backward sees the sum.
        own.grad._set(total._array, total._layout)
    run_post_hooks(node, tensor)


def _accumulate_rows(tensor, grad: RowGrad) -> None:
    """Add a gradient of rows to a leaf's ``.grad``; beside a dense one it becomes dense."""
    if mode.touch is not None:
        mode.touch(tensor)
    own = tensor._own_meta()
    held = own.grad
    if held is not None and own.zeroed is not None and held._array is own.zeroed:
        held = None
    own.grad = accumulate_grad(held, grad, tensor)


def run_post_hooks(node: AccumulateGrad, tensor) -> None:
    """Run the hooks that follow the accumulation into a leaf's ``.grad``."""
    if node.post:
        for hook in list(node.post.values()):
            hook(tensor)
