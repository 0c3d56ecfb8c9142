"""Recorded snippets, run as four processes would run them: one thread per rank, one at a time.

OneFlow's snippets ran in four processes, each with its own local tensors. Here four threads run the same code in turns;
where a local tensor becomes global, a thread waits until all have brought theirs, and the parts are assembled as
`sbpjax.sbp.assemble` does. `to_local` gives a thread its own rank's part. The rest is this package's own code,
computed by each thread for itself with equal results. Grad mode and random state belong to a thread.
"""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax.sbp import algebra
from sbpjax.sbp.assemble import from_local_shards
from sbpjax.sbp.eager import local_shards
from sbpjax.tensor import convert, dispatch, generator
from sbpjax.tensor.mode import mode
from sbpjax.tensor.tensor import Tensor

placements = importlib.import_module("sbpjax.sbp.placement")  # the package's attribute of this name is the class


class LostRankError(Exception):
    """The other ranks ended while this one waited for them: real processes would hang."""


@dataclass
class Ended:
    """How a rank's run of a snippet ended.

    Attributes:
        value: what the variable ``R`` held.
        error: the exception that it raised instead.
    """

    value: Any = None
    error: BaseException | None = None


class Ranks:
    """Threads that take turns and meet at `exchange`."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.turn = 0
        self.waiting: dict[int, Any] = {}
        self.alive = set(range(count))
        self.results: list = []
        self.changed = threading.Condition()
        self.me = threading.local()

    @property
    def rank(self) -> int:
        """The rank whose thread this is."""
        return self.me.rank

    def exchange(self, value) -> dict[int, Any]:
        """Give ``value`` and return what every rank gave."""
        kept = _own_state()
        with self.changed:
            meeting = len(self.results)
            self.waiting[self.rank] = value
            self._pass_on()
            self.changed.wait_for(lambda: len(self.results) > meeting and self.turn == self.rank)
            _restore(kept)
            met = self.results[meeting]
        if len(met) < self.count:
            raise LostRankError(f"ranks {sorted(set(range(self.count)) - set(met))} do not come any more")
        return met

    def _pass_on(self) -> None:
        """Give the turn to a rank that can run; if all that are left wait, their meeting is over."""
        if self.alive and self.alive == set(self.waiting):
            self.results.append(self.waiting)
            self.waiting = {}
        ready = sorted(self.alive - set(self.waiting))
        self.turn = ready[0] if ready else -1
        self.changed.notify_all()

    def run(self, code, make_namespace) -> list[Ended]:
        """Run ``code`` on every rank and return how each ended."""
        ends = [Ended() for _ in range(self.count)]
        kept = _own_state()

        def body(rank: int) -> None:
            self.me.rank = rank
            with self.changed:
                self.changed.wait_for(lambda: self.turn == rank)
            _restore(kept)
            names = make_namespace(rank)
            try:
                exec(code, names)
                ends[rank].value = plain(names.get("R"))
            except Exception as error:
                ends[rank].error = error
            with self.changed:
                self.alive.discard(rank)
                self._pass_on()

        threads = [threading.Thread(target=body, args=(r,), daemon=True) for r in range(self.count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(300)
            assert not t.is_alive(), "a rank did not end"
        _restore(kept)
        return ends


def _own_state():
    stream = generator.default_generator
    return mode.grad, mode.inference, stream._seed, stream._counter


def _restore(kept) -> None:
    stream = generator.default_generator
    mode.grad, mode.inference, stream._seed, stream._counter = kept


def plain(value):
    """Return a value as lists, numbers and strings."""
    if isinstance(value, Tensor):
        return value.numpy().tolist()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def run_snippet(prelude: str, code: str, flow, count: int = 4) -> list[Ended]:
    """Run a recorded snippet on ``count`` ranks."""
    ranks = Ranks(count)
    kept = convert._from_local, Tensor.to_local, placements.devices_of
    placements.devices_of = lambda type: kept[2](type)[:count]
    convert._from_local = lambda x, placement, sbp, grad_sbp: _assemble(ranks, x, placement, sbp, grad_sbp)
    Tensor.to_local = lambda self, *, copy=False: _own_part(ranks, self)
    try:
        program = compile(f"{prelude}\n{code}", "<snippet>", "exec")
        return ranks.run(program, lambda rank: {"flow": flow, "np": np, "r": rank})
    finally:
        convert._from_local, Tensor.to_local, placements.devices_of = kept


def _assemble(ranks: Ranks, x, placement, sbp, grad_sbp):
    """`to_global` of a local tensor, with the parts of all ranks."""
    if placement is None or sbp is None:
        raise convert._incomplete(x, placement, sbp)
    nd_sbp = algebra.to_sbp(algebra.parse(sbp, placement.hierarchy, x._array.ndim))
    if grad_sbp is not None:
        grad_sbp = algebra.to_sbp(algebra.parse(grad_sbp, placement.hierarchy, x._array.ndim))
    blocks = ranks.exchange(np.asarray(x._fresh()._array))
    array, layout = from_local_shards(blocks, placement, nd_sbp)
    rank = ranks.rank

    def back(grad: Tensor) -> Tensor:
        if grad_sbp is not None:
            grad = grad.to_global(placement, grad_sbp)
        grad = grad.to_global(placement, convert._no_partial(nd_sbp))
        held = local_shards(grad._array, grad._layout).get(rank)
        speaks = _speaks(
            placement, layout.codes, rank
        )  # under broadcast the first rank's values count, so only it has a gradient
        own = held if held is not None and speaks else np.zeros(x.shape, np.asarray(x._array).dtype)
        return dispatch.wrap(jnp.asarray(own))

    return convert._record(x, dispatch.wrap_any(array, layout), back)


def _speaks(placement, codes, rank: int) -> bool:
    where = np.argwhere(placement.ranks == rank)
    return bool(len(where)) and all(i == 0 for i, c in zip(where[0], codes, strict=True) if c == algebra.B)


def _own_part(ranks: Ranks, x: Tensor):
    """`to_local`: this rank's part; nothing outside the placement."""
    x._fresh()
    layout = x._layout
    if layout is None:
        return convert.to_local(x)
    rank = ranks.rank
    held = local_shards(x._array, layout)
    part = held.get(rank, np.zeros((0, 0), layout.dtype))
    out = dispatch.wrap(jax.device_put(part, jax.devices("cpu")[0]))

    def back(grad: Tensor) -> Tensor:
        # every rank read its own copy, so the gradient of a copy is one summand of the value's; that of a summand is
        # the sum's
        parts = ranks.exchange(np.asarray(grad._array))
        codes = [algebra.P if c == algebra.B else algebra.B if c == algebra.P else c for c in layout.codes]
        return dispatch.wrap_any(*from_local_shards(parts, layout.placement, algebra.to_sbp(tuple(codes))))

    return convert._record(x, out, back)


__all__ = ["Ended", "LostRankError", "Ranks", "plain", "run_snippet"]
