"""`Graph`: a whole training or evaluation step, written as eager code and run as one compiled program.

    class TrainGraph(nn.Graph):
        def __init__(self, model, optimizer, scheduler):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer, lr_sch=scheduler)

        def build(self, x, y):
            loss = nn.functional.cross_entropy(self.model(x), y)
            loss.backward()
            return loss

    graph = TrainGraph(model, optimizer, scheduler)
    for x, y in batches:
        loss = graph(x, y)

``build`` runs once per signature (shapes, dtypes, layouts, static values, modes of the modules), on tracers. Its
changes of parameters, buffers, optimizers and the random stream happen in the modules and optimizers themselves, so
eager code and other graphs see them. Parameters' ``.grad`` is left as it was.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.runtime.signature_errors import explain_arguments
from sbpjax._core.tensor.storage.version_counter import changes
from sbpjax._core.tracing.signature import Call
from sbpjax.errors import GraphError, GraphTypeError
from sbpjax.nn.module import Module
from sbpjax.optim.lr_scheduler import LRScheduler
from sbpjax.optim.optimizer import Optimizer

from . import saving, schedule_steps
from .config import GraphConfig
from .dynamic import Dynamic, snapshot_of
from .fitting import prepare_program, select_program
from .graph_reports import Reports
from .graph_state import Internals, internals_of
from .module_proxy import ProxyModule
from .program import runtime
from .program.fast_path import CACHE_MISS, fast_path_of
from .program.program import Program

if TYPE_CHECKING:
    from typing import ParamSpec, Protocol, TypeVar

    _P = ParamSpec("_P")
    _R = TypeVar("_R", covariant=True)

    # A call has the arguments and results of the subclass's `build`.
    class _HasBuild(Protocol[_P, _R]):
        def build(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...


exporting = LazyModule("sbpjax.graph.export.export")  # most graphs are not exported


_counts: dict[str, int] = {}

# A call that is never quite the same, such as one whose weights have another owner, is not tried forever.
_MOST_MISSED = 3


@explain_arguments
class Graph(Reports):
    """Base class of graphs; a subclass assigns modules in ``__init__`` and overrides `build`.

    Args:
        dynamic: sizes of inputs that are padded to a few, see `Dynamic`.

    Attributes:
        config: the options, see `GraphConfig`.
    """

    config: GraphConfig = None  # type: ignore[assignment]  # each graph makes its own

    def __init__(self, *, dynamic: Dynamic | None = None) -> None:
        kind = type(self).__name__
        number = _counts[kind] = _counts.get(kind, -1) + 1
        object.__setattr__(self, "_g", Internals(f"{kind}_{number}"))
        self._g.dynamic = dynamic
        object.__setattr__(self, "config", GraphConfig())

    def __del__(self) -> None:
        """Let go of the compiled programs, which nothing else holds; OneFlow's graphs close a session here."""

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of one step from tensors; every subclass overrides this."""
        raise GraphError(
            f"{type(self).__name__}(...)",
            "a graph without build",
            "build computes the results of a graph; every subclass defines it",
            "def build(self, x): return self.model(x)",
        )

    # -- parts of a graph ------------------------------------------------------------------------------------------

    def add_optimizer(self, optim: Optimizer, *, lr_sch: LRScheduler | None = None, is_sparse: bool = False) -> None:
        """Let the graph step an optimizer after every ``build``, and a schedule after every call.

        Args:
            optim: the optimizer; several may be added, of parameters of their own.
            lr_sch: the schedule of its learning rates, which every call of the graph steps; its ``step()`` by hand then
                does nothing, as a schedule counts a step once. One that follows a metric, such as `ReduceLROnPlateau`,
                is not stepped by the graph: call ``lr_sch.step(metric)``, and the next call sees the new rate.
            is_sparse: leave rows of embedding tables without gradient as they are, optimizer state included.

        Raises:
            GraphTypeError: these are no optimizer and schedule.
            GraphError: the schedule is of another optimizer, or a parameter has an optimizer already.
        """
        internals_of(self).add_optimizer(self, optim, lr_sch, bool(is_sparse))
        changes.note()
        self.config.training = True

    def set_grad_scaler(self, grad_scaler: Any = None) -> None:
        """Scale the loss by a loss scaler, and leave out steps whose gradients are not finite; None takes it away.

        Args:
            grad_scaler: an `amp.GradScaler` or `amp.StaticGradScaler`.
        """
        if grad_scaler is not None and not all(
            hasattr(grad_scaler, name) for name in ("scale", "unscale_", "step", "update", "state_tensors")
        ):
            raise GraphTypeError(
                f"{type(self).__name__}.set_grad_scaler",
                f"a {type(grad_scaler).__name__}",
                "a loss scaler has scale, unscale_, step, update and state_tensors",
                "sbpjax.amp.GradScaler()",
            )
        internals_of(self).scaler = grad_scaler
        changes.note()

    def __setattr__(self, name: str, value: Any = None) -> None:
        own = internals_of(self)
        operation = f"{type(self).__name__}.{name} = ..."
        if isinstance(value, ProxyModule):
            value = value.to(Module)
        if isinstance(value, Module):
            self.__dict__.pop(name, None)
            own.blocks[name] = value
        elif isinstance(value, Optimizer):
            raise GraphTypeError(
                operation,
                f"a {type(value).__name__}",
                "a graph steps the optimizers that were added to it",
                "self.add_optimizer(optimizer, lr_sch=scheduler)",
            )
        elif name in own.blocks and value is not None:
            raise GraphTypeError(
                operation, f"a {type(value).__name__}", f"{name} is a module of the graph", "assign a Module"
            )
        else:
            own.blocks.pop(name, None)
            object.__setattr__(self, name, value)
        changes.note()

    def __getattr__(self, name: str) -> Any:
        # Reached only when the instance has no such plain attribute.
        own = self.__dict__.get("_g")
        if own is not None and name in own.blocks:
            return self._proxy(own.blocks[name], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        if internals_of(self).blocks.pop(name, None) is None:
            object.__delattr__(self, name)
        changes.note()

    def _proxy(self, module: Module, path: str = "") -> ProxyModule:
        """Return the proxy of a module; one that is not part of the graph, such as a slice, gets one for the moment."""
        proxies = self._g.proxies
        found = proxies.get(id(module))
        if found is not None and found.origin is module:
            return found
        known = (
            n for name, block in self._g.blocks.items() for n, m in block.named_modules(prefix=name) if m is module
        )
        own = next(known, None)
        found = ProxyModule(self, path if own is None else own, module)
        if own is not None:
            proxies[id(module)] = found
        return found

    @property
    def name(self) -> str:
        """The name of the graph: its class and a number."""
        return self._g.name

    @property
    def training(self) -> bool:
        """Whether the graph has an optimizer."""
        return self.config.training

    @property
    def is_compiled(self) -> bool:
        """Whether a program was compiled."""
        return any(program.is_compiled for program in self._g.programs.values())

    @property
    def program(self) -> Program:
        """The program of the last call, `compile` or `build_graph`.

        Raises:
            GraphError: there is none yet.
        """
        if self._g.latest is None:
            raise GraphError(
                f"{self.name}.program",
                "a graph that was not built",
                "a program is made for arguments",
                "call the graph, or graph.compile(*abstract_args)",
            )
        return self._g.latest[1]

    # -- calls -----------------------------------------------------------------------------------------------------

    def __call__(self: _HasBuild[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run one step: `build`, and the steps of the optimizers and schedules.

        The first call of a signature traces and compiles.
        """
        own = internals_of(self)
        if own.dynamic is None:
            return self._call(args, kwargs)  # type: ignore[attr-defined]
        step = lambda *args, **kwargs: self._call(args, kwargs)  # noqa: E731  # type: ignore[attr-defined]
        return own.dynamic.run(own.name, self.build, step, args, kwargs, lambda: snapshot_of([self]))

    def _call(self, args: tuple, kwargs: dict) -> Any:
        own = internals_of(self)
        if not own.schedules:
            return self._step(own, args, kwargs, None)
        done: list = []
        entries = own.optimizers
        groups = [group for entry in entries for group in entry.optimizer.param_groups]
        before = schedule_steps.held_attributes(
            [entry.scheduler for entry in entries if entry.scheduler is not None], groups
        )
        try:
            result = self._step(own, args, kwargs, done)
            if own.rates is not None:
                own.rates.write(
                    group for entry in entries if entry.scheduler is not None for group in entry.optimizer.param_groups
                )
            for step in own.schedules:
                step()
            done.append(True)
        except BaseException:
            if len(done) == 1:  # the state is new, and the rates are not
                schedule_steps.redo_steps(before, own.schedules)
            raise
        return result

    def _step(self, own: Internals, args: tuple, kwargs: dict, done: list | None) -> Any:
        last, result = own.last, CACHE_MISS
        if last is not None and last.fast_path is not None:
            result = last.fast_path.again(args, kwargs, done)
            if result is not CACHE_MISS:
                last.missed = 0
        return self._run(Call(args, kwargs), done) if result is CACHE_MISS else result

    @hide_mesh
    def _run(self, call: Call, done: list | None) -> Any:
        """Run the program of a call, and record whether such a call can be repeated on the fast path."""
        state, program = select_program(self, call)
        if not program.is_compiled:
            self._compile(program)
        result = program.run(state, call.tensors, done)
        last = self._g.last
        if last is not None:
            last.missed += last.fast_path is not None
            # A program whose fast path misses again and again (a fresh array per step with another owner) would pay
            # for both ways.
            mark, steady = changes.now, last.missed < _MOST_MISSED
            if steady and last.mark is mark:  # nothing moves it in every step
                last.fast_path = fast_path_of(program, state, call, last.static, mark)
            else:
                last.mark, last.fast_path = mark, None
        return result

    def compile(self, *args: Any, **kwargs: Any) -> Graph:
        """Compile for arguments without running; nothing changes and no data is needed.

        Args:
            args: tensors, `TensorSpec`, `jax.ShapeDtypeStruct`, abstract tensors, and static values.
            kwargs: the same by name.

        Returns:
            The graph.

        Example:
            >>> graph.compile(TensorSpec((8, 784)), TensorSpec((8,), flow.int64))
        """
        self.build_graph(*args, **kwargs)
        return self.finish_compile_and_init_runtime()

    @hide_mesh
    def build_graph(self, *args: Any, **kwargs: Any) -> None:
        """Trace and plan for arguments, abstract or not, without compiling."""
        prepare_program(self, args, kwargs)

    def finish_compile_and_init_runtime(self) -> Graph:
        """Compile the program planned by `build_graph`, and return the graph."""
        self._compile(self.program)
        return self

    finish_complie_and_init_runtime = finish_compile_and_init_runtime  # OneFlow's spelling

    @hide_mesh
    def _compile(self, program: Program) -> None:
        if not program.is_compiled:
            program.compile(to_run=True)
            self._g.debug.print_compile_time(self, program)

    # -- files -----------------------------------------------------------------------------------------------------

    @hide_mesh
    def export(
        self,
        path: str | os.PathLike,
        *args: Any,
        platforms: Sequence[str] | None = None,
        dynamic_batch: bool = False,
        key: bytes | None = None,
        onnx: bool = False,
        **kwargs: Any,
    ) -> Path:
        """Write the graph as files that `sbpjax.load_graph` runs without the code of the model.

        Args:
            path: the directory to write: a program of `jax.export`, the weights as safetensors, and a manifest in JSON;
                beside them the program as StableHLO and for XLA.
            *args: example arguments of ``build``, abstract or not: the export has their signature; none for those of
                the last call.
            platforms: kinds of devices that it shall run on, of ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``; by
                default the present one.
            dynamic_batch: leave the size of dim 0 of all tensor arguments free (local graphs only).
            key: sign the export, for ``load_graph(path, key=key)``: at least 16 secret bytes.
            onnx: write ``model.onnx`` as well, for OpenVINO, ONNX Runtime and TensorRT (graphs that only compute).
            **kwargs: example arguments by name.

        Returns:
            The directory.

        Raises:
            ExportError: something is not of a kind that can be written, or a file is in the way; nothing is written.
            EngineError: with ``onnx=True``: an operation has no counterpart there.

        Example:
            >>> graph.export("classifier", TensorSpec((1, 784)), platforms=["cpu", "tpu"])
            >>> graph.export("as-called")  # after a call: for arguments like its own
        """
        return exporting.export(self, path, args, kwargs, platforms, dynamic_batch, key, onnx)

    # -- state -----------------------------------------------------------------------------------------------------

    def state_dict(self, destination: dict | None = None) -> dict[str, Any]:
        """Return the state of modules, optimizers, schedules, loss scaler and random stream.

        Args:
            destination: a dict to fill instead of a new one.

        Returns:
            For each module its `state_dict` under its name; the rest under ``"graph.optimizers"``,
            ``"graph.lr_schedulers"``, ``"graph.grad_scaler"``, ``"graph.rng"``. Tensors share storage with the live
            ones, as those of `Module.state_dict`.
        """
        return saving.state_dict(self, destination)

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Load the result of `state_dict`, before or after the first call; a resumed run continues bit by bit.

        Args:
            state_dict: the state.
            strict: raise for missing and unexpected keys too.

        Raises:
            StateDictError: keys, shapes or kinds do not fit; nothing is loaded then.
        """
        saving.load_state_dict(self, state_dict, strict)

    def runtime_state_dict(self, destination: dict | None = None, with_eager: bool = False) -> dict[str, Any]:
        """Return the arguments that the graph has programs for, so that another process can compile them ahead.

        Args:
            destination: a dict to fill instead of a new one.
            with_eager: add the result of `state_dict`.
        """
        return runtime.runtime_state_dict(self, destination, with_eager)

    def load_runtime_state_dict(self, state_dict: dict[str, Any], *, warmup_with_run: bool = True) -> None:
        """Compile for the arguments that another graph had programs for.

        Args:
            state_dict: the result of `runtime_state_dict`.
            warmup_with_run: compile now; else trace and plan only. Nothing runs either way.
        """
        runtime.load_runtime_state_dict(self, state_dict, warmup_with_run)

    @staticmethod
    def runtime_state_dict_to(state_dict: dict[str, Any], device: Any) -> dict[str, Any]:
        """Return a runtime state with its local tensors moved to a device."""
        return runtime.runtime_state_dict_to(state_dict, device)

    def enable_save_runtime_state_dict(self, mode: bool = True) -> None:
        """Accepted for OneFlow's spelling: `runtime_state_dict` needs no preparation here."""

    def share_from(self, shared_graph: Graph) -> None:
        """Use the programs of another graph of the same class and modules; each compiles for both."""
        runtime.share(self, shared_graph)

    def enable_shared(self, mode: bool = True) -> None:
        """Accepted for OneFlow's spelling: programs always share the state of their modules."""

    # -- printed output --------------------------------------------------------------------------------------------

    def debug(
        self,
        v_level: int = -1,
        *,
        ranks: int | list[int] | None = None,
        max_py_stack_depth: int = 2,
        only_user_py_stack: bool = True,
        op_repr_with_py_stack: bool = False,
    ) -> None:
        """Print the events of making a program.

        Args:
            v_level: -1 nothing; 0 the phases with their times; 1 also every module with its inputs and outputs; 2 also
                every op with its layouts; 3 also every boxing with its bytes.
            ranks: the processes that print; rank 0 if None, all for -1.
            max_py_stack_depth: how many source lines an op is given.
            only_user_py_stack: name the user's lines only.
            op_repr_with_py_stack: print the source lines with the ops.
        """
        self._g.debug.set(v_level, ranks, max_py_stack_depth, only_user_py_stack, op_repr_with_py_stack)

    # -- decorators ------------------------------------------------------------------------------------------------

    @staticmethod
    def trace(func: Callable) -> Callable:
        """Return a function, or a module, that runs as a graph.

        Args:
            func: a function of tensors, or a Module.

        Example:
            >>> @nn.Graph.trace
            ... def double(x):
            ...     return x * 2
        """

        class TracedGraph(Graph):
            def __init__(self) -> None:
                super().__init__()
                if isinstance(func, Module):
                    self.module = func

            def build(self, *args: Any, **kwargs: Any) -> Any:
                return func(*args, **kwargs)

        graph = TracedGraph()

        def call(*args: Any, **kwargs: Any) -> Any:
            return graph(*args, **kwargs)

        call.graph = graph  # type: ignore[attr-defined]
        return call if isinstance(func, Module) else functools.update_wrapper(call, func)

    @staticmethod
    def with_dynamic_input_shape(*, size: int = 10, enable_shared: bool = True) -> Callable:
        """Return a decorator of ``__init__`` that sets how many programs are kept.

        Every graph takes inputs of new shapes; programs of one graph always share parameters and state.

        Args:
            size: as `GraphConfig.set_max_programs`.
            enable_shared: as `enable_shared`.
        """

        def decorate(init: Callable) -> Callable:
            @functools.wraps(init)
            def wrapper(self: Graph, *args: Any, **kwargs: Any) -> None:
                init(self, *args, **kwargs)
                self.config.set_max_programs(size)
                self.enable_shared(enable_shared)

            return wrapper

        return decorate
