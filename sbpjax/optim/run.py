"""Compiled in-place update of tensors: on one device, on a placement, inside a trace.

The old parameters and states are donated, so an update needs no second copy of them; `exchange` runs the updates of all
places, so that an interrupt leaves all of a step or nothing of it. A payload with other references (a retained graph,
`x.jax()`, an alias) must survive; the reference count shows that, and then nothing is donated.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from sbpjax._core.compiler.eager import global_ops
from sbpjax._core.compiler.eager.background_compile import run_soon
from sbpjax._core.compiler.eager.evaluator import first_use, setting
from sbpjax._core.compiler.eager.evaluator.evaluated import may_evaluate
from sbpjax._core.compiler.eager.options import compiler_options_of_update
from sbpjax._core.compiler.launch import Launcher, checks_results
from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh
from sbpjax._core.runtime.compilation_cache import compile_cached
from sbpjax._core.runtime.lru_cache import LRUCache
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation
from sbpjax._core.tensor.creation import like as likes
from sbpjax._core.tensor.creation.host_constants import put_like
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.abstract import abstract
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.device import META
from sbpjax._core.tensor.handle.tensor import wrap
from sbpjax._core.tensor.storage.exchange import ComputedResults, Run, exchange, plan_writes
from sbpjax._core.tensor.storage.lazy_constant import lazy_full_like
from sbpjax._core.tensor.storage.payload import (
    is_shared,
    is_traced,
    payload,
    payload_metadata,
    payloads,
    payloads_and_numbers,
    put_all,
)
from sbpjax._core.tensor.tape.row_grad import RowGrad
from sbpjax.optim import rules
from sbpjax.optim.evaluated_update import evaluate_update
from sbpjax.optim.rules import Bucket
from sbpjax.sbp.abstract import of_aval
from sbpjax.sbp.algebra import broadcast

TRACE = "trace"  # the place of every tensor inside a trace


class Job(NamedTuple):
    """Tensors of one bucket.

    Attributes:
        numbers: hyperparameters, in the order of `Bucket.hyper`.
        step: the 0-d step count.
        params: the parameters, each with a gradient.
        states: for each name in `Bucket.states` one tensor per parameter.
    """

    numbers: tuple[Any, ...]
    step: Tensor
    params: list[Tensor]
    states: list[list[Tensor]]


def place_of(tensor: Tensor) -> Any:
    """Return the common place of the tensors of one update: the placement, the device, or the trace."""
    if is_traced(tensor):
        return TRACE
    if tensor.layout is not None:
        return tensor.layout.placement
    sharding = payload_metadata(tensor).sharding
    # A device hashes and compares faster than its sharding.
    return META if sharding is None else getattr(sharding, "_device", sharding)


def update_of(buckets: tuple[Bucket, ...], jobs: list[Job], skip: Tensor | None = None) -> list[Run]:
    """Return the update of all buckets as one program that writes step counts, parameters and states, see `run_of`.

    Args:
        buckets: the static facts of each run of parameters.
        jobs: the tensors, one job per bucket.
        skip: a 0-d flag; where it is set, nothing changes.
    """
    grads: list[list] = []
    for job in jobs:
        found: list[Any] = [p.grad for p in job.params]
        grads.append([*(g.ids for g in found), *(g.rows for g in found)] if found[0].__class__ is RowGrad else found)
    static, inputs, targets, donated = _arguments(buckets, jobs, grads, skip)
    return run_of(rules.update, static, inputs, targets, donated, jobs[0].params[0])


def compile_update(buckets: tuple[Bucket, ...], jobs: list[Job]) -> None:
    """Compile the program of `update_of` on one device for gradients like the parameters.

    Args:
        buckets: as there.
        jobs: as there, with `jax.ShapeDtypeStruct`s for the step counts and states.
    """
    static, inputs, _, donated = _arguments(buckets, jobs, [list(job.params) for job in jobs], None)
    structs = [_struct(payload_metadata(x)) if isinstance(x, Tensor) else x for x in inputs]
    _compile_program(rules.update, static, tuple(donated)).compile(structs)


def _struct(array: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def _arguments(buckets: tuple[Bucket, ...], jobs: list[Job], grads: list[list], skip: Tensor | None) -> tuple:
    """Return the static facts, the inputs, those of them that are written, and their places."""
    inputs: list[Any] = [] if skip is None else [skip]
    donated: list[int] = []
    targets: list[Tensor] = []
    for job, gradients in zip(jobs, grads):
        inputs += [float(n) if n.__class__ is int else n for n in job.numbers]
        for tensors in ([job.step], job.params, gradients, *job.states):
            if tensors is not gradients:
                donated += range(len(inputs), len(inputs) + len(tensors))
                targets += tensors
            inputs += tensors
    static = (("buckets", buckets),) if skip is None else (("buckets", buckets), ("guarded", True))
    return static, inputs, targets, donated


def run_of(
    fn: Callable, static: tuple, inputs: list, targets: list[Tensor], donated: list[int], like: Tensor
) -> list[Run]:
    """Return a pure function of tensors as a program that writes its results to some of its inputs.

    Args:
        fn: the function, called ``fn(*arrays, **dict(static))``; it returns one array per target.
        static: its attributes.
        inputs: tensors and numbers, on one place.
        targets: the tensors that get the results; each keeps its layout.
        donated: the positions of the targets in `inputs`.
        like: a tensor on that place.

    Returns:
        The programs for `exchange`; an empty list where the results were written at once: in a trace, without data, or
        where a write needs Python.
    """
    place = place_of(like)
    if place is TRACE:
        results = dispatch.run(op_of(fn, static), tuple(inputs))
        put_all(targets, payloads(results), [target.layout for target in targets])
        return []
    arrays = payloads_and_numbers(inputs)
    if place is META:
        put_all(targets, list(map(of_aval, jax.eval_shape(_compile_program(fn, static, ()).plain, *arrays))))
        return []
    if like.layout is None:
        plan = None if checks_results() else plan_writes(targets)
        if plan is None:
            put_all(targets, _compile_program(fn, static, ()).plain(*arrays))
            return []
        return [Run(_launcher_of(fn, static, targets, arrays, donated), arrays, plan)]
    layouts = [target.layout for target in targets]
    given = [x.layout if isinstance(x, Tensor) else None for x in inputs]
    out_sbps = tuple([layout.codes for layout in layouts])
    plan = None if checks_results() else plan_writes(targets, layouts)
    if plan is None:
        put_all(targets, *global_ops.execute(fn, static, arrays, given, out_sbps=out_sbps))
        return []
    launcher, arrays, found = global_ops.prepare_launch(
        fn, static, arrays, given, out_sbps, _unshared_positions(targets, arrays, donated)
    )
    plan = plan_writes(targets, found) or plan if list(found) != layouts else plan
    return [Run(launcher, arrays, plan)]


def run_on_device(fn: Callable, static: tuple, inputs: list, targets: list[Tensor], donated: list[int]) -> list:
    """Run a program of `run_of` on one device; return the arrays that the function returns beyond the targets'."""
    arrays = payloads_and_numbers(inputs)
    plan = None if checks_results() else plan_writes(targets)
    if plan is None:
        results = _compile_program(fn, static, ()).plain(*arrays)
        put_all(targets, results[: len(targets)])
        return list(results[len(targets) :])
    run = Run(_launcher_of(fn, static, targets, arrays, donated), arrays, plan)
    exchange(run)
    return run.outs[len(targets) :]


def _launcher_of(fn: Callable, static: tuple, targets: list[Tensor], arrays: list, donated: list[int]) -> Any:
    """Return what runs a program in an exchange: its results, where NumPy computes them, else its launcher."""
    program = _compile_program(fn, static, _unshared_positions(targets, arrays, donated))
    if not setting.is_on():
        return program.launcher
    plain = _compile_program(fn, static, ())
    results = plain.evaluate(arrays)
    if results is None:
        return program.launcher
    if plain.is_half_evaluated:
        structs = [_struct(x) if isinstance(x, jax.Array) else x for x in arrays]
        run_soon(functools.partial(program.compile, structs))
    return ComputedResults(list(results))


class _Program:
    """Program of one device, whose options are determined when it is first compiled.

    Attributes:
        launcher: runs it.
        is_half_evaluated: whether half of the calls that NumPy computes are over, for the arrays of the last one.
        plain: the same without options, for traces and for `jax.debug_nans`.
    """

    __slots__ = (
        "_buckets",
        "_chosen",
        "_donate",
        "_evaluated",
        "_function",
        "_guarded",
        "_lock",
        "is_half_evaluated",
        "launcher",
        "plain",
    )

    def __init__(self, fn: Callable, static: tuple, donate: tuple[int, ...]):
        keywords = dict(static)

        def update(*arrays):
            return fn(*arrays, **keywords)

        update.__name__ = fn.__name__
        self._buckets = keywords["buckets"] if fn is rules.update else ()
        self._guarded = keywords.get("guarded", False)
        self._function, self._donate, self._lock = update, donate, threading.Lock()
        self.plain: Any = jit_without_mesh(update, donate_argnums=donate)
        self._chosen: Any = None
        self._evaluated = LRUCache(8)
        self.is_half_evaluated = False
        self.launcher = Launcher(self.compile, fn.__name__)

    @hide_mesh
    def evaluate(self, arrays: list) -> Any:
        """Return the results by NumPy, as for an op (`op_calls`); None where the compiled program has to run."""
        if not may_evaluate():
            return None
        key = tuple([getattr(x, "aval", x.__class__) for x in arrays])
        program = self._evaluated.find(key)
        if program is None:
            program = evaluate_update(self._buckets, self._guarded, arrays) if self._buckets else None
            program = program or first_use.evaluate_traced(self._function.__name__, self.plain, arrays) or _COMPILED
            self._evaluated.keep(key, program)
        results = None if program is _COMPILED else program(arrays)
        self.is_half_evaluated = results is not None and program.calls == program.half
        return results

    @hide_mesh
    def compile(self, arrays: Sequence) -> Any:
        """Return it compiled for arrays or `jax.ShapeDtypeStruct`s; JAX caches the result."""
        with self._lock:  # another thread may be compiling it
            if self._chosen is None:
                options = compiler_options_of_update(self.plain.trace(*arrays).jaxpr) if self._buckets else None
                # Of the same function, so that JAX keeps its trace.
                again = functools.partial(jit_without_mesh, self._function, donate_argnums=self._donate)
                self._chosen = self.plain if options is None else again(compiler_options=options)
            return compile_cached(self._chosen.lower(*arrays))


@functools.lru_cache(maxsize=512)
def _compile_program(fn: Callable, static: tuple, donate: tuple[int, ...]) -> _Program:
    return _Program(fn, static, donate)


_COMPILED: Any = object()  # in a table of evaluated programs: it has to run


class _Holder:
    def __init__(self) -> None:
        self.array = object()


# How many references a payload has that its tensor and the argument list hold, and nothing else.
_HOLDER = _Holder()
_LIST = [_HOLDER.array]
_UNSHARED = sys.getrefcount(_LIST[0])


def _unshared_positions(tensors: list[Tensor], arrays: list, places: list[int]) -> tuple[int, ...]:
    """Return the positions to donate: all of them, or none if one of the arrays has another reference."""
    references = sys.getrefcount
    for tensor, place in zip(tensors, places):
        count = references(arrays[place])
        if count > _UNSHARED and count > _UNSHARED + is_shared(tensor):  # a cell holds its array too
            return ()
    return tuple(places)


def full_like(param: Tensor, value: float, dtype: Any = None) -> Tensor:
    """Return a tensor of one value, laid out like the parameter, of its dtype or of a given one."""
    out = lazy_full_like(param, value) if dtype is None or dtype is param.dtype else None
    if out is not None:
        return out
    if param.is_global or param.is_meta:
        return likes.full_like(param.detach(), value, dtype=dtype or param.dtype)
    return _local_full(param, param.shape, value, dtype or param.dtype)


def _local_full(param: Tensor, shape: Sequence[int], value: float, dtype: Any) -> Tensor:
    """Return a local tensor of one value on the parameter's device; of a traced parameter a constant of its program."""
    if is_traced(param):
        return creation.full(shape, value, dtype=dtype)
    return wrap(put_like(np.full(shape, value, dtype.np), payload(param)))


def full(param: Tensor, shape: tuple[int, ...], value: float) -> Tensor:
    """Return a tensor of one value and any shape at the parameter's place, the same on all ranks, at least float32."""
    dtype = statistics_dtype(param)
    if param.is_global:
        sbp = (broadcast,) * len(param.placement.hierarchy)
        with abstract() if param.is_meta else contextlib.nullcontext():
            return creation.full(shape, value, dtype=dtype, placement=param.placement, sbp=sbp)
    if param.is_meta:
        return creation.full(shape, value, dtype=dtype, device="meta")
    return _local_full(param, shape, value, dtype)


def statistics_dtype(param: Tensor) -> Any:
    """Return the dtype of statistics of a parameter: float64 for float64, float32 for all others."""
    return dtypes.float64 if param.dtype == dtypes.float64 else dtypes.float32


def is_low(dtype: Any) -> bool:
    """Return whether parameters of a dtype can have a float32 copy that is more exact."""
    return dtype.is_floating_point and dtype.itemsize < 4


def master_of(param: Tensor) -> Tensor:
    """Return a float32 copy of a parameter."""
    return param.detach().to(dtypes.float32)


def new_step(param: Tensor, value: int) -> Tensor:
    """Return a 0-d int64 step count at the parameter's place."""
    if param.is_global:
        sbp = (broadcast,) * len(param.placement.hierarchy)
        with abstract() if param.is_meta else contextlib.nullcontext():
            return creation.full((), value, dtype=dtypes.int64, placement=param.placement, sbp=sbp)
    if param.is_meta:
        return creation.full((), value, dtype=dtypes.int64, device="meta")
    return _local_full(param, (), value, dtypes.int64)


def has_same_placement(tensor: Tensor, param: Tensor) -> bool:
    """Return whether a step count is on the parameter's placement or device."""
    here, there = tensor.layout, param.layout
    if here is None or there is None:
        return here is there and place_of(tensor) is place_of(param)
    return here.placement == there.placement


def has_same_layout(state: Tensor, param: Tensor) -> bool:
    """Return whether a state tensor has the parameter's layout; in a trace, its placement."""
    here, there = state.layout, param.layout
    if here is there:
        return here is not None or place_of(state) == place_of(param)
    if here is None or there is None or here.placement != there.placement:
        return False
    return here.shape is None or there.shape is None or here.codes == there.codes


def broadcast_like(tensor: Tensor, param: Tensor) -> Tensor:
    """Return a tensor on the parameter's device, or broadcast over its placement."""
    if not param.is_global:
        return (tensor.to_local() if tensor.is_global else tensor).to(param.device)
    sbp = [broadcast] * len(param.placement.hierarchy)
    return tensor.to_global(placement=param.placement, sbp=sbp)


def lay_out_like(state: Tensor, param: Tensor) -> Tensor:
    """Return a state tensor in the parameter's layout, keeping its value and dtype."""
    if not param.is_global:
        return (state.to_local() if state.is_global else state).to(param.device)
    if not state.is_global:
        sbp = [broadcast] * len(param.placement.hierarchy)
        state = state.to_global(placement=param.placement, sbp=sbp)
    return state.to_global(placement=param.placement, sbp=param.sbp)
