"""The traced step of a graph: build, then the step of its optimizers.

    [split into micro-batches → scan] build → unscale → clip → update → update of the loss scale

``build`` calls ``loss.backward()``; the rest follows it in the same trace. Under accumulation of k the inputs of B
rows become k micro-batches of B / k rows, contiguous in the logical view, and one `jax.lax.scan` runs ``build`` on
them: it carries the buffers that ``build`` writes and the sums of the gradients. Each backward starts with 1 / k, so
the sums are the means, and a partial sum stays one through the loop: it is reduced once, after it. Where a loss is
divided by a count of the inputs, such as the targets that are not ignored, the count is the batch's
(`_core.programs.batch_counts`), so that the mean of the losses is the batch's, however the targets are spread.
"""

from __future__ import annotations

import contextlib
from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.jax_private import jaxpr_as_fun
from sbpjax._core.programs.batch_counts import with_batch_counts
from sbpjax._core.programs.casts import without_casts
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.amp.casting import use_casting, use_fresh_cache
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.dispatch.op_calls import inline_calls
from sbpjax._core.tensor.dispatch.traced import logical_value, note_per_process, unpin_layout
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import put
from sbpjax._core.tensor.tape.row_grad import RowGrad, put_grad, row_parts
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import Call
from sbpjax.errors import GraphError, message
from sbpjax.optim.clip_grad import clip_grad_norm_
from sbpjax.sbp import Layout
from sbpjax.sbp.boxing_marker import to_sbp

from .name_scope import Scope


class GraphStep:
    """The function of one graph that is traced.

    Args:
        graph: the graph.
        state: its state, whose handles hold tracers while this runs.
        sums: place of a state tensor → the layout in which its gradients are summed under accumulation.
    """

    def __init__(self, graph, state: State, sums: dict[int, Layout]) -> None:
        self._graph = graph
        self._state = state
        self._sums = sums
        self.scope = Scope(graph, state, sums)

    @property
    def own_state(self) -> str:
        """The way a user makes something a part of the graph's state, for errors."""
        return "in the graph's __init__: self.model = model, self.tensor = tensor, self.add_optimizer(optimizer)"

    def take(self, tensors: list[Tensor]) -> None:
        """Make tensors that ``build`` writes, and that are not the graph's, a part of its state."""
        self._graph._g.taken += tensors

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        graph, count = self._graph, self._graph.config.accumulation_steps
        seed = _seed(_start_of_backward(count, graph._g.scaler))
        with self.scope.active(), self._forbid_optimizer_steps(), seed, use_casting(graph.config.casting()):
            if count == 1:
                result = graph.build(*args, **kwargs)
            elif mode.inline:
                args, kwargs = _first_micro_batch(count, Call(args, kwargs))
                result = graph.build(*args, **kwargs)
            else:
                result = _accumulate_grads(graph, self._state, count, Call(args, kwargs), self._sums)
        # PyTorch's optimizers do not run under autocast: an update in bfloat16 would lose its small steps.
        with use_casting(None):
            self._update()
        return result

    @contextlib.contextmanager
    def _forbid_optimizer_steps(self):
        """Refuse steps of the graph's optimizers within the block: the graph makes them after ``build``."""
        before = mode.touch
        owned = {id(entry.optimizer): entry.optimizer for entry in self._graph._g.optimizers}

        def touch(x) -> None:
            if id(x) in owned:
                raise _step_error(self._graph, owned[id(x)])
            if before is not None:
                before(x)

        mode.touch = touch
        try:
            yield
        finally:
            mode.touch = before

    def _update(self) -> None:
        scaler, bound = self._graph._g.scaler, self._graph.config.clip_grad_norm
        optimizers = [entry.optimizer for entry in self._graph._g.optimizers]
        if optimizers and all(p.grad is None for o in optimizers for group in o.param_groups for p in group["params"]):
            raise _no_gradient_error(self._graph, optimizers)
        for optimizer in optimizers:
            _warn_of_unchanged(self._graph, optimizer)
        if scaler is not None:
            for optimizer in optimizers:
                with jax.named_scope(type(optimizer).__name__):
                    # All before any clip: the norm is over the gradients of all optimizers.
                    scaler.unscale_(optimizer)
        if bound is not None and optimizers:
            with jax.named_scope("clip_grad_norm"):
                clip_grad_norm_([p for o in optimizers for group in o.param_groups for p in group["params"]], *bound)
        for optimizer in optimizers:
            with jax.named_scope(type(optimizer).__name__):
                if optimizer.clips:
                    optimizer.clip_grad()
                with _scaled_rates(optimizer):
                    if scaler is not None:
                        scaler.step(optimizer)
                    else:
                        optimizer.step()
        if scaler is not None:
            with jax.named_scope(type(scaler).__name__):
                scaler.update()


@contextlib.contextmanager
def _scaled_rates(optimizer):
    """Multiply the rates of groups by their ``"lr_scale"`` within the block, as OneFlow does in graphs alone."""
    rates = [(group, group["lr"]) for group in optimizer.param_groups if "lr_scale" in group]
    for group, rate in rates:
        group["lr"] = rate * group["lr_scale"]
    try:
        yield
    finally:
        for group, rate in rates:
            group["lr"] = rate


def _no_gradient_error(graph, optimizers: list) -> GraphError:
    names, name = ", ".join(type(o).__name__ for o in optimizers), type(graph).__name__
    return GraphError(
        f"{name}.build(...)",
        f"add_optimizer({names}), and after build no parameter of it has a gradient",
        "a graph with an optimizer trains: build calls backward() on a loss that its parameters go into",
        "loss.backward() before build returns the loss; an optimizer made after the last parameter was replaced "
        "(to_global of a tensor, an assignment); for evaluation, a graph without add_optimizer",
    )


def _warn_of_unchanged(graph, optimizer) -> None:
    """Warn of parameters that no step changes, since they are another model's, or were replaced in this one."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    own = {id(p) for module in graph._g.blocks.values() for p in module.parameters()}
    others = [p for p in parameters if p.grad is None and id(p) not in own]
    if not own or not others:
        return
    first = f"{others[0].dtype.name}{list(others[0].shape)}"
    seen = f"{len(others)} of {len(parameters)} parameters, such as {first}, are in no module of the graph"
    rule = "an optimizer changes tensors that backward() gives a gradient; these have none after build, and stay"
    fix = f"make the optimizer of parameters that the modules have now: {type(optimizer).__name__}(model.parameters())"
    operation = f"{type(graph).__name__}.add_optimizer({type(optimizer).__name__})"
    warn(message(operation, seen, rule, fix))


def _start_of_backward(count: int, scaler) -> Any:
    """Return the initial cotangent of a backward: 1 / k under accumulation, times the loss scale; None for 1."""
    seed: Any = None if count == 1 else 1.0 / count
    if scaler is None:
        return seed
    scale = scaler.scale(wrap_any(jnp.ones((), jnp.float32)))
    return scale if seed is None else scale * seed


@contextlib.contextmanager
def _seed(value: Any):
    before, mode.seed = mode.seed, value
    try:
        yield
    finally:
        mode.seed = before


# -- gradient accumulation -------------------------------------------------------------------------------------------


def _accumulate_grads(graph, state: State, count: int, call: Call, divided: dict[int, Layout]) -> Any:
    """Run ``build`` on `count` micro-batches in one loop; leave the sums of the gradients in the tensors' ``.grad``."""
    operation = f"{type(graph).__name__}.build with gradient_accumulation_steps={count}"
    split = [i for i, t in enumerate(call.tensors) if t.ndim]
    _check_sizes(operation, count, call, [call.places[i] for i in split], graph.build)
    wholes = [logical_value(t) for t in call.tensors]
    # Contiguous in the logical batch, so that values do not depend on the layout; the price is a redistribution of
    # the inputs, which the plan shows.
    micros = [wholes[i].reshape(count, wholes[i].shape[0] // count, *wholes[i].shape[1:]) for i in split]
    before = [logical_value(t) for t in state.tensors]
    numbers = [holder[key] for holder, key in state.options]
    drawn = default_generator._counter
    base = jax.random.key_data(default_generator.key())
    body = _Body(graph, state, call, split, numbers)
    shapes = [jax.typeof(x) for x in before]
    # Traced before the loop, not by `scan` itself: the buffers that the body writes, and the existing gradients, are
    # known after the trace, and the carry of a scan has to be known before.
    closed = jax.make_jaxpr(body)(
        jax.typeof(base),
        jax.ShapeDtypeStruct((), jnp.uint32),
        shapes,
        [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in micros],
    )
    closed, counts = _with_batch_counts(graph, operation, inline_calls(closed), body, len(before), count)
    # The key above was drawn on trial. A program without random ops must leave the stream in the state of eager code.
    if not body.random:
        default_generator._counter = drawn
    # Of weights: made once, not in every iteration.
    casts: list[jax.Array] = []
    if mode.autocast is not None:
        fixed = [2 + i for i in range(len(before)) if i not in body.written]
        closed, wanted = without_casts(closed, fixed)
        casts = [jax.lax.convert_element_type(before[c.place - 2], c.dtype) for c in wanted]
    run = jaxpr_as_fun(closed)
    order = jnp.arange(count, dtype=jnp.uint32)
    wholes = [] if counts is None else counts(base, order, *before, *micros)

    def iteration(carry, xs):
        written, sums = carry
        arrays = list(before)
        for i, array in zip(body.written, written, strict=True):
            arrays[i] = array
        results = run(base, xs[0], *arrays, *xs[1], *wholes, *casts)
        n, m = len(body.written), len(body.graded)
        grads = results[n : n + m]
        # Gradients of rows are kept, concatenated: a sum would have the table's shape.
        added = [s + g for s, g in zip(sums, grads, strict=True)]
        for k, i in enumerate(body.graded):
            # ZeRO 2: unpinned, the planner would carry the sums whole or partial through the loop, as large as
            # without ZeRO.
            if i in divided:
                added[k] = to_sbp(added[k], divided[i].placement, divided[i].sbp)
        rows = n + m + 2 * len(body.by_rows)
        return (results[:n], added), (results[n + m : rows], results[rows:])

    # Zeros may be taken as P for nothing, so the planner can carry partial sums and reduce them once, after the loop.
    zeros = [jnp.zeros(before[i].shape, before[i].dtype) for i in body.graded]
    start = ([before[i] for i in body.written], zeros)
    (written, sums), (rows, outs) = jax.lax.scan(iteration, start, (order, micros), length=count)
    for i, array in zip(body.written, written, strict=True):
        put(state.tensors[i], array, unpin_layout(state.tensors[i].layout))
    for i, total in zip(body.graded, sums, strict=True):
        state.tensors[i].grad = wrap_any(total, unpin_layout(state.tensors[i].layout))
    for i, ids, grads in zip(body.by_rows, rows[::2], rows[1::2], strict=True):
        table = state.tensors[i]
        pair = (wrap_any(x.reshape(-1, *x.shape[2:]), unpin_layout(table.layout)) for x in (ids, grads))
        put_grad(table, RowGrad(*pair, table))
    return body.results.fill_places(map(_join_iterations, outs, body.layouts))


def _with_batch_counts(graph, operation: str, closed, body: _Body, state: int, count: int) -> tuple:
    """Return the program of a micro-batch as a part of the batch's, and a function of the batch's counts, or None.

    ``closed``: the program, whose last outputs are the losses that backwards started from.
    """
    outs = len(closed.jaxpr.outvars)
    made = with_batch_counts(
        closed,
        losses=range(outs - body.losses, outs),
        rows=range(2 + state, len(closed.jaxpr.invars)),
        drawn=[1],
        changing=[2 + i for i in {*body.written, *body.graded, *body.by_rows}],
        count=count,
    )
    if made.unknown:
        warn(_loss_mean_warning(operation, made.unknown, count))
    jaxpr = made.closed.jaxpr
    kept = jaxpr.replace(outvars=jaxpr.outvars[: outs - body.losses], debug_info=jaxpr.debug_info.with_unknown_names())
    return type(closed)(kept, made.closed.consts), made.values


def _loss_mean_warning(operation: str, reasons: list[str], count: int) -> str:
    rule = (
        "the loss of a batch is known from its micro-batches where it is a mean over rows or over a count of the "
        "inputs; of another loss the mean of the micro-batches' is taken, which is not that of the batch"
    )
    fix = (
        f"give the batch's count to the call, as a 0-d tensor, and divide the sum by it: total / (count / {count}); "
        "or config.set_gradient_accumulation_steps(1)"
    )
    return message(operation, "; ".join(reasons), rule, fix)


def _first_micro_batch(count: int, call: Call) -> tuple[tuple, dict]:
    """Return the arguments of the first of several micro-batches."""
    tensors = [_wrap_like(t, logical_value(t)[: t.shape[0] // count]) if t.ndim else t for t in call.tensors]
    return call.rebuilt(tensors)


class _Body:
    """One iteration of the loop, to be traced once.

    Attributes:
        written: the places of the state tensors that it writes.
        graded: the places of those that get a gradient.
        by_rows: the places of those that get a gradient of rows.
        layouts: of the tensors that it returns.
        results: its results, without the tensors.
        losses: of how many tensors a backward started; they are returned last.
        random: whether it draws random numbers.
    """

    results: tree.Skeleton

    def __init__(self, graph, state: State, call: Call, split: list[int], numbers: list) -> None:
        self._graph, self._state, self._call, self._split = graph, state, call, split
        self._numbers = numbers
        self.written: list[int] = []
        self.graded: list[int] = []
        self.by_rows: list[int] = []
        self.layouts: list = []
        self.losses = 0
        self.random = False

    def __call__(self, base, index, arrays: list, micros: list) -> list:
        state, call = self._state, self._call
        tensors = list(call.tensors)
        for i, micro in zip(self._split, micros, strict=True):
            tensors[i] = _wrap_like(call.tensors[i], micro)
        args, kwargs = call.rebuilt(tensors)
        # A key per micro-batch: with one for all, dropout would drop the same places in each.
        key = jax.random.fold_in(jax.random.wrap_key_data(base), index)
        with state.traced([*arrays, *self._numbers]), default_generator.under_trace(key) as stream, use_fresh_cache():
            with _collect_losses() as losses:
                result = self._graph.build(*args, **kwargs)
            self.random = stream.drawn > 0
            if state.kept is not None:
                state.kept.rewrite(state.tensors)
            after = [logical_value(t) for t in state.tensors]
            self.written = [i for i, array in enumerate(after) if array is not arrays[i]]
            found = [(i, t.grad) for i, t in enumerate(state.tensors) if t.grad is not None]
            self.by_rows = [i for i, g in found if g.__class__ is RowGrad]
            self.graded = [i for i, g in found if g.__class__ is not RowGrad]
            grads = [logical_value(state.tensors[i].grad) for i in self.graded]
            grads += [logical_value(x) for i in self.by_rows for x in row_parts(state.tensors[i])]
            outs, self.results = tree.split_tensors(result)
            self.layouts = [unpin_layout(o.layout) for o in outs]
            losses = [logical_value(x) for x in losses if x.shape.numel() == 1]
            self.losses = len(losses)
            return [after[i] for i in self.written] + grads + [logical_value(o) for o in outs] + losses


@contextlib.contextmanager
def _collect_losses():
    """Collect the tensors that backwards in the block start from."""
    before, mode.losses = mode.losses, []
    try:
        yield mode.losses
    finally:
        mode.losses = before


def _wrap_like(tensor: Tensor, array) -> Tensor:
    made = wrap_any(array, unpin_layout(tensor.layout))
    note_per_process(made)
    return made.requires_grad_() if tensor.requires_grad else made


def _join_iterations(array, layout) -> Tensor:
    """Return the results of all iterations as one tensor: 0-d ones stacked, others concatenated."""
    return wrap_any(array if array.ndim == 1 else array.reshape(-1, *array.shape[2:]), layout)


def _check_sizes(operation: str, count: int, call: Call, places: list[int], build) -> None:
    wrong = [i for i in places if call.leaves[i].shape[0] % count]
    if wrong or not places:
        paths = call.paths(build)
        seen = ", ".join(f"{paths[i]}: {call.leaves[i].dtype.name}{list(call.leaves[i].shape)}" for i in wrong)
        sizes = ", ".join(
            f"{call.leaves[i].shape[0]} = {call.leaves[i].shape[0] // count} · {count} + "
            f"{call.leaves[i].shape[0] % count}"
            for i in wrong
        )
        raise GraphError(
            operation,
            seen or "no tensor with a dim 0 to split",
            f"every input with dims is split on dim 0 into {count} equal micro-batches" + (f"; {sizes}" * bool(wrong)),
            f"give batches of a multiple of {count} rows, or config.set_gradient_accumulation_steps(1)",
        )


def _step_error(graph, optimizer) -> GraphError:
    return GraphError(
        f"{type(optimizer).__name__}.step() inside {type(graph).__name__}.build",
        "an optimizer that was given to add_optimizer",
        "the graph steps it after build, so this would be a second step",
        "leave the call out of build; loss.backward() is all that is needed there",
    )
