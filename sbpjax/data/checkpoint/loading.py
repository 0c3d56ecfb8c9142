"""Load checkpoints into any placement and sbp, on any number of processes and devices, in full or in part.

    state = sbpjax.checkpoint.load(path, placement=p, sbp=sbpjax.sbp.broadcast)
    sbpjax.checkpoint.load(path, into={"model": model, "optimizer": optimizer})    # in place, each in its own layout

Every device reads only its own part. Before anything is changed, sizes and checksums of all files are
compared: each process checks its share of the files, and all of them raise if one finds a fault.
"""

from __future__ import annotations

import os
from itertools import zip_longest
from typing import Any

import numpy as np

from sbpjax._core.tensor.creation.from_data import tensor
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax.errors import CheckpointError
from sbpjax.nn.parameter import Parameter
from sbpjax.sbp import Layout, algebra
from sbpjax.sbp.placement import placement as Placement

from . import tree
from .collective_io import run_collectively
from .reader import Contents
from .restore_plan import Finish, RestorePlan, entries_of, mismatch_error


def verify(path: str | os.PathLike) -> None:
    """Compare the size and checksum of every file; all processes call it, each reads its share.

    Raises:
        CheckpointError: a file is missing, truncated or changed; all processes raise it.
    """
    contents, _ = run_collectively("verifying a checkpoint", lambda: Contents(path), lambda found: None)
    contents.verify()


def load(
    path: str | os.PathLike,
    *,
    into: Any = None,
    placement: Placement | None = None,
    sbp: Any = None,
    pattern: str | list[str] | None = None,
    part: str | None = None,
    check: bool = True,
    strict: bool = True,
    cast: bool = False,
    device: Any = None,
) -> Any:
    """Return the saved state, or load it into an existing one; all processes call it.

    Args:
        path: the directory.
        into: a state of the same names. Its tensors are written in place, each in the layout that it has; modules,
            optimizers, schedules, scalers and other objects with ``load_state_dict`` are entries themselves and receive
            their state; plain values are set in its dicts and lists.
        placement: without ``into``: where tensors are made global; without it they are local, and whole on every
            process.
        sbp: with ``placement``, their nd-sbp; broadcast by default. Splits of missing dims become broadcast.
        pattern: load only the tensors whose names match, e.g. ``"model/*"`` or a list of patterns. With ``into``,
            everything else stays as it is.
        part: load only this key of the saved dict; names in patterns and errors begin below it.
        check: compare checksums first.
        strict: with ``into``: an entry that only one of checkpoint and ``into`` has is an error; False skips it.
        cast: with ``into``: allow lossy conversions to the dtypes there.
        device: where local tensors are made.

    Returns:
        The state; with ``into``, that state.

    Raises:
        CheckpointError: there is no checkpoint, a file is damaged (nothing is loaded then), or ``into`` does not fit:
            the text lists names, shapes and dtypes.
    """

    def open_contents() -> tuple[Contents, Any]:
        found = Contents(path)
        return found, found.state if part is None else part_of(found, part)

    (contents, state), gathered = run_collectively(
        "loading a checkpoint", open_contents, lambda found: [str(found[0].directory)]
    )
    _check_same_request(gathered)
    if check:
        contents.verify()
    return load_contents(contents, state, into, placement, sbp, pattern, part, strict, cast, device)


def load_contents(
    contents: Contents,
    state: Any,
    into: Any = None,
    placement: Placement | None = None,
    sbp: Any = None,
    pattern: str | list[str] | None = None,
    part: str | None = None,
    strict: bool = True,
    cast: bool = False,
    device: Any = None,
) -> Any:
    """Load a checkpoint whose reader is at hand, and ``state`` of its structure; see `load`."""

    def plan_layouts() -> tuple[dict[str, Layout | None], RestorePlan | None, Finish | None]:
        names = {n: n for n in contents.tensors}
        if part is not None:
            names = {n.removeprefix(f"{part}/"): n for n in tree.names_of(state)}
        wanted = [names[n] for n in tree.select_names(names, pattern)]
        if into is None:
            return {n: _target(contents, n, placement, sbp) for n in wanted}, None, None
        fit = RestorePlan(contents, wanted, cast, pattern is not None, part)
        done = fit.walk(into, state, strict=strict)
        error = mismatch_error(fit, strict)
        if error is not None:
            raise error
        contents.check_parts(fit.targets)
        return fit.targets, fit, done

    (targets, fit, done), gathered = run_collectively(
        "loading a checkpoint", plan_layouts, lambda made: [f"{n} as {t}" for n, t in made[0].items()]
    )
    _check_same_request(gathered)
    arrays = contents.read(targets)

    def make(name: str) -> Any:
        if name not in arrays:
            return tree.MISSING
        if contents.is_array(name):
            return arrays[name]
        layout = targets[name]
        x = wrap_any(arrays[name], layout) if layout else tensor(np.asarray(arrays[name]), device=device)
        grad = contents.tensors[name].get("parameter")
        return x if grad is None else Parameter(x, requires_grad=bool(grad))

    with contents.reading("its structure"):
        if fit is None or done is None:
            return tree.unpack(state, make)
    return fit.finish(done, arrays, make)


def part_of(contents: Contents, part: str) -> Any:
    """Return the structure under a key of the saved dict."""
    found = entries_of(contents.state) or {}
    if part not in found:
        operation = f"loading {part!r} of {str(contents.directory)!r}"
        seen = f"a dict with keys {list(found)[:6]}" if found else "no dict"
        rule = "part= is a key of the dict that was saved"
        raise CheckpointError(operation, seen, rule, "name one of its keys, or leave it out")
    return found[part]


def _check_same_request(gathered: dict[int, list[str]]) -> None:
    """Raise if a rank loads other tensors or layouts than rank 0."""
    for rank, theirs in gathered.items():
        if theirs == gathered[0]:
            continue
        both = zip_longest(gathered[0], theirs, fillvalue="nothing more")
        first, other = next((a, b) for a, b in both if a != b)
        seen = f"rank {rank} loads {other}, rank 0 {first}"
        rule = "all ranks load the same tensors of one checkpoint, into the same layouts"
        raise CheckpointError("loading a checkpoint", seen, rule, "give all ranks one path and one state")


def _target(contents: Contents, name: str, placement: Placement | None, sbp: Any) -> Layout | None:
    if placement is None or contents.is_array(name):
        return None
    shape = contents.shape(name)
    return Layout(placement, fit_sbp(sbp, placement, len(shape)), shape, contents.dtype(name))


def fit_sbp(sbp: Any, placement: Placement, ndim: int) -> tuple:
    """Return the nd-sbp of a tensor of ``ndim`` dims: broadcast where none is given or the split dim is missing."""
    sbp = algebra.in_order(sbp, placement)
    entries = sbp if isinstance(sbp, (list, tuple)) else [sbp] * len(placement.hierarchy)
    codes = [algebra.B if e is None else algebra.parse([e], (1,))[0] for e in entries]
    return algebra.to_sbp(tuple(algebra.B if c >= ndim else c for c in codes))
