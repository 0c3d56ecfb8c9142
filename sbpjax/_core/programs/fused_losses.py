"""Fused linear cross entropy: replaces a linear layer and its loss without materializing the logits.

A traced step multiplies by the weights of the last layer, and `cross_entropy` and its gradient read the product:

    logits = dot_general x w                      losses, dx, dw = linear_cross_entropy_grad x w y ct
    … reshape, cast, + bias, transpose and back
    losses = cross_entropy logits y        →
    dlogits = cross_entropy_grad logits y ct
    … dx = dot_general dlogits w;  dw = dot_general dlogits x

That holds as long as nothing else reads the logits or their gradient. If the gradient of the losses, `ct`, depends on
the losses themselves, they are computed by an equation of their own before it, and the logits twice.

`cross_entropy` is an equation from some size on (`_core.ops.losses.class_loss.LARGE`): smaller logits are no burden.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sbpjax._core.jax_private import ClosedJaxpr, Literal
from sbpjax._core.ops.losses.cross_entropy_primitive import linear_cross_entropy_grad_p, linear_cross_entropy_p

from .normalise import body_of, live_equations
from .rewrite import rewrite_program

_CASTS = ("convert_element_type", "cast_back")
_FLOATS = ("bfloat16", "float16", "float32", "float64")


def fuse_linear_losses(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program in which the losses of a linear layer's outputs are computed without these, loops included."""
    return rewrite_program(closed, _change)


def _change(closed: ClosedJaxpr, inside: Callable) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns = [inside(eqn) for eqn in jaxpr.eqns]
    constants: dict = {}
    outvars = list(jaxpr.outvars)
    if any(eqn.primitive.name in ("cross_entropy", "cross_entropy_grad") for eqn in eqns):
        # Without dead equations: losses of which only the gradient was wanted are still there after autodiff, and would
        # count as readers of the logits.
        eqns, outvars = _fuse_losses(live_equations(_drop_transposes(eqns), outvars), outvars, constants)
    if len(eqns) == len(jaxpr.eqns) and all(a is b for a, b in zip(eqns, jaxpr.eqns, strict=True)):
        return closed
    names = jaxpr.debug_info.with_unknown_names()
    held = [*jaxpr.constvars, *constants]
    changed = jaxpr.replace(constvars=held, eqns=eqns, outvars=outvars, debug_info=names)
    return ClosedJaxpr(changed, [*closed.consts, *constants.values()])


def _drop_transposes(eqns: list) -> list:
    """Return equations that read values themselves, where they read the transpose of their transpose."""
    maker, source, changed = {}, {}, []
    for eqn in eqns:
        own = [v if isinstance(v, Literal) else source.get(v, v) for v in eqn.invars]
        if any(a is not b for a, b in zip(own, eqn.invars, strict=True)):
            eqn = eqn.replace(invars=own)
        changed.append(eqn)
        if eqn.primitive.name != "transpose" or isinstance(eqn.invars[0], Literal):
            continue
        before = maker.get(eqn.invars[0])
        maker[eqn.outvars[0]] = eqn
        if before is None:
            continue
        first, then = before.params["permutation"], eqn.params["permutation"]
        if [first[d] for d in then] == list(range(len(then))):
            source[eqn.outvars[0]] = before.invars[0]
    return changed


def _fuse_losses(eqns: list, outvars: list, constants: dict) -> tuple[list, list]:
    """Return the equations and results of a program after all the changes that it allows."""
    seen: set = set()
    while True:
        program = _Program(eqns, outvars)
        for eqn in eqns:
            # By logits, not by number: every change numbers the equations anew, and logits that were refused once are
            # not looked at again.
            if eqn.primitive.name in ("cross_entropy", "cross_entropy_grad") and eqn.invars[0] not in seen:
                seen.add(eqn.invars[0])
                found = _match(program, eqn.invars[0])
                if found is not None:
                    eqns, outvars = _replace_match(program, found, constants)
                    break
        else:
            return eqns, outvars


class _Program:
    """The equations of a program, with the producer and the readers of each value."""

    def __init__(self, eqns: list, outvars: list) -> None:
        self.eqns, self.outvars = eqns, outvars
        self.maker = {v: i for i, eqn in enumerate(eqns) for v in eqn.outvars}
        self.readers: dict[Any, list[int]] = {}  # of a value, the equations that read it; -1 is the program's result
        for i, eqn in enumerate(eqns):
            for v in eqn.invars:
                if not isinstance(v, Literal):
                    self.readers.setdefault(v, []).append(i)
        for v in outvars:
            if not isinstance(v, Literal):
                self.readers.setdefault(v, []).append(-1)

    def made_by(self, v) -> Any:
        """Return the equation that makes a value, or None."""
        i = None if isinstance(v, Literal) else self.maker.get(v)
        return None if i is None else self.eqns[i]

    def depending_on(self, first: int) -> set:
        """Return the values that depend on those of an equation."""
        found = set(self.eqns[first].outvars)
        for eqn in self.eqns[first + 1 :]:
            if any(v in found for v in eqn.invars if not isinstance(v, Literal)):
                found.update(eqn.outvars)
        return found

    def needed_for(self, v, first: int) -> list[int]:
        """Return the equations from one on that a value depends on."""
        found, open_ = set(), [v]
        while open_:
            v = open_.pop()
            i = None if isinstance(v, Literal) else self.maker.get(v)
            if i is not None and i > first and i not in found:
                found.add(i)
                open_ += self.eqns[i].invars
        return sorted(found)


class _GradientEquation(NamedTuple):
    """An equation that makes a gradient of the product: of x, of the weights or of the bias.

    Attributes:
        eqn: its number.
        of: 0, 1 or 2.
        turned: whether its last dim comes first.
    """

    eqn: int
    of: int
    turned: bool


class _Match(NamedTuple):
    """Logits that only their losses read.

    Attributes:
        product: the equation of the product.
        bias: the added bias, or None.
        forward: the number of the equation that makes the losses, or None.
        backward: of the one that makes their gradient, or None.
        ends: the equations that read that.
    """

    product: Any
    bias: Any
    forward: int | None
    backward: int | None
    ends: list[_GradientEquation]


def _match(program: _Program, logits) -> _Match | None:
    readers = {i: program.eqns[i].primitive.name if i >= 0 else "" for i in program.readers[logits]}
    forward = [i for i, name in readers.items() if name == "cross_entropy"]
    backward = [i for i, name in readers.items() if name == "cross_entropy_grad"]
    # With any other reader the logits are there anyway, and to compute them in the loss once more would only cost time.
    if len(readers) > len(forward) + len(backward) or len(forward) > 1 or len(backward) > 1:
        return None
    if len({program.eqns[i].invars[1] for i in readers}) > 1:
        return None
    start = _product_of(program, logits)
    if start is None:
        return None
    product, bias = start
    ends: list[_GradientEquation] = []
    if backward and not _collect_gradient_readers(program, program.eqns[backward[0]].outvars[1], product, ends):
        return None
    # A gradient that is made twice is not known here.
    if len({end.of for end in ends}) < len(ends) or (bias is None and any(end.of == 2 for end in ends)):
        return None
    return _Match(product, bias, next(iter(forward), None), next(iter(backward), None), ends)


def _product_of(program: _Program, v):
    """Return the product that logits are, and the bias in them; None if they are something else."""
    bias, classes = None, v.aval.shape[-1]
    while (eqn := program.made_by(v)) is not None:
        name = eqn.primitive.name
        if name in _CASTS or name == "reshape" and _keeps_last(eqn):
            (v,) = eqn.invars
        elif name == "add" and bias is None:
            found = [(a, _match_broadcast_vector(program, b, classes)) for a, b in (eqn.invars, eqn.invars[::-1])]
            v, bias = next(((a, b) for a, b in found if b is not None and not isinstance(a, Literal)), (None, None))
        elif name == "dot_general":
            return (eqn, bias) if _is_linear(eqn) else None
        else:
            return None
        # A reader on the way, as a metric that takes the logits before their reshape, needs them as a whole, too.
        if v is None or len(program.readers[v]) != 1:
            return None
    return None


def _keeps_last(eqn) -> bool:
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    return before[-1:] == after[-1:] and eqn.params["dimensions"] is None


def _match_broadcast_vector(program: _Program, v, classes: int):
    """Return the vector over the classes that a value is for every token, or None."""
    eqn = program.made_by(v)
    if eqn is None or eqn.primitive.name not in ("broadcast_in_dim", "reshape"):
        return None
    (source,) = eqn.invars[:1]
    last = len(v.aval.shape) - 1
    # With as many tokens as classes a vector over the tokens has the same shape: the dims of the broadcast decide.
    along = eqn.primitive.name == "reshape" or tuple(eqn.params["broadcast_dimensions"]) == (last,)
    fits = along and v.aval.shape[-1] == classes and source.aval.shape == (classes,)
    return source if fits and not isinstance(source, Literal) else None


def _is_linear(eqn) -> bool:
    """Return whether a product is one of rows with a matrix, whose columns come last."""
    x, w = eqn.invars
    (of_x, of_w), (batch, _) = eqn.params["dimension_numbers"]
    plain = not batch and len(of_x) == len(of_w) == 1 and len(w.aval.shape) == 2
    return plain and x.aval.dtype == w.aval.dtype and str(x.aval.dtype) in _FLOATS


def _collect_gradient_readers(program: _Program, v, product, ends: list[_GradientEquation]) -> bool:
    """Collect the readers of the gradient of logits; return whether all of them are known."""
    for i in program.readers.get(v, []):
        if i < 0:
            return False
        eqn = program.eqns[i]
        name = eqn.primitive.name
        if name in _CASTS or name == "reshape" and _keeps_last(eqn):
            if not _collect_gradient_readers(program, eqn.outvars[0], product, ends):
                return False
            continue
        if name == "reduce_sum" and tuple(sorted(eqn.params["axes"])) == tuple(range(len(v.aval.shape) - 1)):
            ends.append(_GradientEquation(i, 2, False))
            continue
        end = _end(eqn, i, v, product) if name == "dot_general" else None
        if end is None:
            return False
        ends.append(end)
    return True


def _end(eqn, number: int, v, product) -> _GradientEquation | None:
    """Return the kind of gradient that a product with the gradient of logits gives."""
    first = eqn.invars[0] is v
    other = eqn.invars[1 if first else 0]
    (lhs, rhs), (batch, _) = eqn.params["dimension_numbers"]
    mine, its = (lhs, rhs) if first else (rhs, lhs)
    x, w = product.invars
    (of_x, of_w), _ = product.params["dimension_numbers"]
    rank, shape = len(v.aval.shape), v.aval.shape
    if batch or eqn.params["precision"] != product.params["precision"] or x is w:
        return None
    if other is w and tuple(mine) == (rank - 1,) and tuple(its) == (1 - of_w[0],):
        return _GradientEquation(number, 0, not first)
    free = [d for d in range(len(x.aval.shape)) if d != of_x[0]]
    if other is x and shape[:-1] == tuple(x.aval.shape[d] for d in free):
        if sorted(mine) == list(range(rank - 1)) and [free[d] for d in mine] == list(its):
            return _GradientEquation(number, 1, not first)
    return None


def _replace_match(program: _Program, found: _Match, constants: dict) -> tuple[list, list]:
    """Return equations and results with one match replaced."""
    eqns, now = program.eqns, {}
    positions = [i for i in (found.forward, found.backward) if i is not None]
    moved: list[int] = []
    if found.forward is not None and found.backward is not None and _can_fuse(eqns, found.forward, found.backward):
        ct = eqns[found.backward].invars[2]
        moved = program.needed_for(ct, found.forward)
        if ct not in (program.depending_on(found.forward) if not isinstance(ct, Literal) else ()) and not any(
            eqns[i].effects for i in moved
        ):
            positions = [found.forward]
        else:
            moved = []
    made: dict[int, list] = {}
    for at in positions:
        whole = len(positions) == 1
        losses = found.forward if whole or at == found.forward else None
        backward = found.backward if whole or at == found.backward else None
        made[at] = _equations(program, found, losses, backward, eqns[at].source_info, constants, now)
    order: list = []
    for i, eqn in enumerate(eqns):
        if i in made:
            # The operands of the losses' gradient usually come after the losses (a mean's 1/n, a loss scale): they have
            # to move before the equation that makes both.
            order += [eqns[j] for j in moved] + made[i]
        elif i not in moved:
            order.append(eqn)
    renamed = lambda v: v if isinstance(v, Literal) else now.get(v, v)  # noqa: E731
    gone = {*(found.forward, found.backward), *(end.eqn for end in found.ends)}
    kept = [e for e in order if not any(e is eqns[i] for i in gone if i is not None)]
    kept = [
        e.replace(invars=[renamed(v) for v in e.invars]) if any(_is_replaced(now, v) for v in e.invars) else e
        for e in kept
    ]
    outvars = [renamed(v) for v in program.outvars]
    return live_equations(kept, outvars), outvars


def _can_fuse(eqns: list, forward: int, backward: int) -> bool:
    """Return whether losses and a gradient may be results of one equation, in the losses' place."""
    # The gradient may belong to other losses of these logits, which nothing reads: with another label smoothing, or
    # computed earlier, so that its readers come before these losses.
    same = {**eqns[forward].params, "dtypes": ()} == {**eqns[backward].params, "dtypes": ()}
    return same and forward < backward


def _is_replaced(now: dict, v) -> bool:
    return not isinstance(v, Literal) and v in now


def _equations(program: _Program, found: _Match, forward, backward, source, constants: dict, now: dict) -> list:
    """Return the equations that make losses, gradients or both, and enter under whose names their results go on."""
    x, w = found.product.invars
    (of_x, of_w), _ = found.product.params["dimension_numbers"]
    loss = program.eqns[backward if forward is None else forward]
    target = loss.invars[1]
    how = {**loss.params, "precision": found.product.params["precision"]}
    how.pop("dtypes", None)
    ends = found.ends if backward is not None else []
    dtypes: list = [None] * (2 if found.bias is None else 3)
    for end in ends:
        dtypes[end.of] = program.eqns[end.eqn].outvars[0].aval.dtype
    operands = [x, w, target, *([] if found.bias is None else [found.bias])]
    if backward is not None:
        operands.append(program.eqns[backward].invars[2])

    def run(x, w, target, *rest):
        bias = [] if found.bias is None else [rest[0]]
        rows = jnp.moveaxis(x, of_x[0], -1)
        lead = rows.shape[:-1]
        given = (rows.reshape(*target.shape, rows.shape[-1]), w if of_w[0] else w.T, *bias, target)
        if backward is None:
            return linear_cross_entropy_p.bind(*given, **how)
        losses, *grads = linear_cross_entropy_grad_p.bind(*given, rest[-1], dtypes=tuple(dtypes), **how)
        by_kind = dict(zip([i for i, d in enumerate(dtypes) if d is not None], grads, strict=True))
        shaped = [by_kind[end.of].reshape(*lead, -1) if end.of == 0 else by_kind[end.of] for end in ends]
        return [losses, *(jnp.moveaxis(g, -1, 0) if e.turned else g for g, e in zip(shaped, ends, strict=True))]

    body = body_of(jax.make_jaxpr(run)(*(jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in operands)))
    eqns: list = []
    losses, *grads = body.splice(operands, source, eqns, constants, own_lines=False)
    if forward is not None:
        now[program.eqns[forward].outvars[0]] = losses
    if backward is not None:
        now[program.eqns[backward].outvars[0]] = losses
    now.update((program.eqns[end.eqn].outvars[0], g) for end, g in zip(ends, grads, strict=True))
    return eqns
