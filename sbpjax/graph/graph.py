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

``build`` runs once per signature (shapes, dtypes, layouts, static values, modes of the modules), on tracers. What it
does to parameters, buffers, optimizers and the random stream happens in the modules and optimizers themselves, so
eager code and other graphs see it. Parameters' ``.grad`` is left as it was.
"""

from __future__ import annotations

import functools
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
from jax.core import Tracer

from sbpjax.errors import GraphError, GraphTypeError, StaticInputError, message
from sbpjax.nn.module import Module
from sbpjax.optim.lr_scheduler import LRScheduler
from sbpjax.optim.optimizer import Optimizer
from sbpjax.sbp.hierarchies import Hierarchies, fastest
from sbpjax.tensor import Tensor
from sbpjax.tensor.changes import changes

from . import report, runtime, saving, tree
from .auto import Lent, equal_layers, not_on_one_placement, with_checkpoints
from .capture import State, infos, plain_attributes
from .collectives import Traffic, traffic_of
from .config import GraphConfig
from .garbage import collected_later
from .masters import keep_masters
from .memory import Memory, estimate, memory
from .program import Options, Program
from .proxy import CHANGES, GraphModule, ProxyModule, checkpoints_of, stages_of
from .repeat import MISSED, Repeat, repeat_of
from .signature import Call, Signature, as_tensor, difference, signature_of
from .step import Step
from .views import Views
from .zero import Zero

log = logging.getLogger("sbpjax.graph")


def _on_cpu(state: State) -> bool:
    """Return whether a program on this state runs on CPUs, present or not."""
    types = {t._layout.placement.type for t in state.tensors if t._layout is not None}
    return types == {"cpu"} if types else jax.default_backend() == "cpu"


def planned(asked: str, step: Step, state: State, call: Call, options: Options, zero: Zero | None):
    """Return a program that chose the layouts of a state, and the state's tensors that stand on its placement."""
    lent = Lent(state.tensors, options.auto and options.auto.placement)
    try:
        places = {t._layout.placement for t in (*state.tensors, *call.tensors) if t._layout is not None}
        if len(places) > 1:
            raise not_on_one_placement(asked, places)
        return Program(step, state, call, options, asked, zero), lent
    except BaseException:
        lent.give_back()
        raise


def _placement_of(state: State) -> Any:
    """Return the placement of a state's first global tensor, None if it has none."""
    return next((t._layout.placement for t in state.tensors if t._layout is not None), None)


class Entry(NamedTuple):
    """One optimizer of a graph.

    Attributes:
        optimizer: the optimizer.
        scheduler: the schedule of its learning rates, or None.
        is_sparse: whether rows without gradient are left alone.
    """

    optimizer: Optimizer
    scheduler: LRScheduler | None
    is_sparse: bool


@dataclass(slots=True)
class _Last:
    """What the last call found, to see quickly that the next one is of the same signature.

    Attributes:
        mark: `changes.now` behind that call.
        repeat: the quick way to make that call again, if there is one.
        missed: how often it was tried in vain.
    """

    state: State
    tensors: list
    structure: Any
    static: list
    arguments: list
    config: tuple
    attributes: list
    program: Program
    mark: Any = None
    repeat: Repeat | None = None
    missed: int = 0


class _Life:
    """What a graph keeps for itself, apart from the user's attributes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.blocks: OrderedDict[str, Module] = OrderedDict()
        self.proxies: dict[int, ProxyModule] = {}
        self.options: dict[Module, GraphModule] = {}
        self.optimizers: list[Entry] = []
        self.schedules: list[LRScheduler] = []  # those that are stepped behind every call
        self.scaler: Any = None
        self.trained: dict[int, tuple[Tensor, str]] = {}
        self.programs: OrderedDict[Signature, Program] = OrderedDict()
        self.latest: tuple[Signature, Program] | None = None
        self.last: _Last | None = None
        self.debug = report.Debug()


_counts: dict[str, int] = {}

_MOST_MISSED = 3  # a call that is never quite the same, such as one whose weights somebody holds, is not tried forever


class Graph(Views):
    """Base class of graphs; a subclass assigns modules in ``__init__`` and overrides `build`.

    Attributes:
        config: the options, see `GraphConfig`.
    """

    config: GraphConfig = None  # type: ignore[assignment]  # each graph makes its own

    def __init__(self) -> None:
        kind = type(self).__name__
        number = _counts[kind] = _counts.get(kind, -1) + 1
        object.__setattr__(self, "_g", _Life(f"{kind}_{number}"))
        object.__setattr__(self, "config", GraphConfig())

    def __del__(self) -> None:
        """Let go of the compiled programs, which nothing else holds; OneFlow's graphs close a session here."""

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of one step from tensors; every subclass overrides this."""
        raise GraphError(
            message(
                f"{type(self).__name__}(...)",
                "a graph without build",
                "build says what a graph computes; every subclass defines it",
                "def build(self, x): return self.model(x)",
            )
        )

    # -- what a graph is made of -----------------------------------------------------------------------------------

    def add_optimizer(self, optim: Optimizer, *, lr_sch: LRScheduler | None = None, is_sparse: bool = False) -> None:
        """Let the graph step an optimizer after every ``build``, and a schedule after every call.

        Args:
            optim: the optimizer; several may be added, of parameters of their own.
            lr_sch: the schedule of its learning rates; one that follows a metric, such as `ReduceLROnPlateau`, is not
                stepped by the graph: call ``lr_sch.step(metric)``, and the next call sees the new rate.
            is_sparse: leave rows of embedding tables without gradient as they are, optimizer state included.

        Raises:
            GraphTypeError: these are no optimizer and schedule.
            GraphError: the schedule is of another optimizer, or a parameter has an optimizer already.
        """
        life = _life(self)
        asked = f"{type(self).__name__}.add_optimizer"
        if not isinstance(optim, Optimizer):
            raise GraphTypeError(
                message(asked, f"a {type(optim).__name__}", "optim is a sbpjax.optim.Optimizer", "optim.SGD(params)")
            )
        if lr_sch is not None and not hasattr(lr_sch, "step"):
            raise GraphTypeError(
                message(asked, f"lr_sch of type {type(lr_sch).__name__}", "lr_sch is a learning-rate schedule",
                        "lr_sch=optim.lr_scheduler.StepLR(optimizer, 10)")
            )  # fmt: skip
        owner = getattr(lr_sch, "optimizer", optim)
        if owner is not optim:
            raise GraphError(
                message(asked, "a schedule of another optimizer", "a schedule sets the learning rates of its own",
                        f"make it as {type(lr_sch).__name__}(optim, ...)")
            )  # fmt: skip
        taken = {id(p) for entry in life.optimizers for group in entry.optimizer.param_groups for p in group["params"]}
        if any(id(p) in taken for group in optim.param_groups for p in group["params"]):
            raise GraphError(
                message(asked, "a parameter of an optimizer that was added before",
                        "a parameter is updated by one optimizer", "give each optimizer parameters of its own")
            )  # fmt: skip
        if is_sparse:
            optim.use_sparse_updates()
        life.optimizers.append(Entry(optim, lr_sch, bool(is_sparse)))
        if lr_sch is not None and getattr(lr_sch, "is_pure", True):
            life.schedules.append(lr_sch)
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
                message(
                    f"{type(self).__name__}.set_grad_scaler",
                    f"a {type(grad_scaler).__name__}",
                    "a loss scaler has scale, unscale_, step, update and state_tensors",
                    "sbpjax.amp.GradScaler()",
                )
            )
        _life(self).scaler = grad_scaler
        changes.note()

    def __setattr__(self, name: str, value: Any = None) -> None:
        life = _life(self)
        asked = f"{type(self).__name__}.{name} = ..."
        if isinstance(value, ProxyModule):
            value = value.to(Module)
        if isinstance(value, Module):
            self.__dict__.pop(name, None)
            life.blocks[name] = value
        elif isinstance(value, Optimizer):
            raise GraphTypeError(
                message(asked, f"a {type(value).__name__}", "a graph steps the optimizers that were added to it",
                        "self.add_optimizer(optimizer, lr_sch=scheduler)")
            )  # fmt: skip
        elif name in life.blocks and value is not None:
            raise GraphTypeError(
                message(asked, f"a {type(value).__name__}", f"{name} is a module of the graph", "assign a Module")
            )
        else:
            life.blocks.pop(name, None)
            object.__setattr__(self, name, value)
        changes.note()

    def __getattr__(self, name: str) -> Any:
        # Reached only when the instance has no such plain attribute.
        life = self.__dict__.get("_g")
        if life is not None and name in life.blocks:
            return self._proxy(life.blocks[name], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        if _life(self).blocks.pop(name, None) is None:
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
                message(f"{self.name}.program", "a graph that was not built", "a program is made for arguments",
                        "call the graph, or graph.compile(*abstract_args)")
            )  # fmt: skip
        return self._g.latest[1]

    # -- calls -----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run one step: `build`, and the steps of the optimizers and schedules.

        The first call of a signature traces and compiles.
        """
        life = _life(self)
        last = life.last
        result = MISSED if last is None or last.repeat is None else last.repeat.again(args, kwargs)
        if result is MISSED:
            result = self._run(Call(args, kwargs))
        for schedule in life.schedules:
            schedule.step()
        return result

    def _run(self, call: Call) -> Any:
        """Run the program of a call, and find out whether such a call can be made again the quick way."""
        state, program = self._fit(call)
        if not program.is_compiled:
            self._compile(program)
        result = program.run(state, call.tensors)
        last = self._g.last
        if last is not None:
            last.missed += last.repeat is not None
            mark, steady = changes.now, last.missed < _MOST_MISSED
            if steady and last.mark is mark:  # nothing moves it in every step
                last.repeat = repeat_of(program, state, call, last.static, mark)
            else:
                last.mark, last.repeat = mark, None
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

    def build_graph(self, *args: Any, **kwargs: Any) -> None:
        """Trace and plan for arguments, abstract or not, without compiling."""
        leaves, structure = tree.flatten((args, kwargs))
        args, kwargs = tree.unflatten(structure, map(as_tensor, leaves))
        self._prepared(args, kwargs)

    def finish_compile_and_init_runtime(self) -> Graph:
        """Compile what `build_graph` planned, and return the graph."""
        self._compile(self.program)
        return self

    def memory(self, *args: Any, compiled: bool = True, **kwargs: Any) -> Memory:
        """Return what a step needs of one device's memory, by kind; nothing runs.

        Args:
            args: as for `compile`; none for the program of the last call.
            compiled: ask the compiler; else estimate it from the plan, which takes no compilation.
            kwargs: the same by name.

        Raises:
            OutOfMemoryError: the compiler finds that the device has less.
        """
        if args or kwargs:
            self.build_graph(*args, **kwargs)
        return (memory if compiled else estimate)(self.program, State(self._owners()))

    def traffic(self, *args: Any, **kwargs: Any) -> Traffic:
        """Return what a step moves between devices, planned and compiled, by kind; nothing runs.

        Raises:
            MixedTensorError: the program runs on one device, and moves nothing.
        """
        if args or kwargs:
            self.build_graph(*args, **kwargs)
        return traffic_of(self.program)

    finish_complie_and_init_runtime = finish_compile_and_init_runtime  # OneFlow's spelling

    def _prepared(self, args: tuple, kwargs: dict) -> tuple[State, Call, Program]:
        call = Call(args, kwargs)
        state, program = self._fit(call)
        return state, call, program

    def _fit(self, call: Call) -> tuple[State, Program]:
        """Return the state and the program for a call, the last one's if nothing has changed since."""
        life = _life(self)
        last = life.last
        attributes = list(self.__dict__.values())
        if last is not None and last.structure == call.structure and last.state.unchanged():
            tensors, arguments = last.state.infos(), infos(call.tensors)
            if (
                tensors == last.tensors
                and arguments == last.arguments
                and last.config == (self.config.key(), CHANGES[0])
                and list(map(id, attributes)) == list(map(id, last.attributes))
                and call.static() == last.static
            ):
                last.tensors, last.arguments = tensors, arguments
                return last.state, last.program
        life.last = None
        if any(isinstance(t._array, Tracer) for t in call.tensors):
            raise GraphError(
                message(
                    f"{self.name}(...)",
                    "a call of a graph inside a traced program",
                    "a graph is a whole program; what runs inside another one is its modules",
                    "call the module in build, and leave the graph out",
                )
            )
        before = [(e.optimizer, {p: s.copy() for p, s in e.optimizer.state.items()}) for e in life.optimizers]
        undo = keep_masters([e.optimizer for e in life.optimizers]) if self.config.amp else None
        try:
            zero = self._zero(call)
            if zero is not None:
                zero.divide_state()
            state = State(self._owners())
            self._check_optimizers(state)
            program = self._program(state, call, zero)
        except BaseException:
            if undo is not None:
                undo()
            for optimizer, tensors in before:  # the state that was made for the trace goes with it
                optimizer.state.clear()
                optimizer.state.update(tensors)
            raise
        life.last = _Last(
            state,
            state.infos(),
            call.structure,
            call.static(),
            infos(call.tensors),
            (self.config.key(), CHANGES[0]),
            attributes,
            program,
        )
        return state, program

    def _check_optimizers(self, state: State) -> None:
        """Refuse an optimizer of a parameter that a module had and has no longer: its updates would go nowhere."""
        names = {id(t): name for name, t in zip(state.names, state.tensors, strict=True)}
        known = self._g.trained
        for i, entry in enumerate(self._g.optimizers):
            for param in (p for group in entry.optimizer.param_groups for p in group["params"]):
                name = names.get(id(param), "")
                if not name.startswith(f"optimizer[{i}]"):
                    known[id(param)] = param, name
                elif id(param) in known:
                    raise GraphError(
                        message(
                            f"{self.name}(...)",
                            f"{known[id(param)][1]} is another Parameter now",
                            f"{type(entry.optimizer).__name__} updates the one that the module no longer has",
                            "write into the old one with param.data = value, or make a new optimizer and graph",
                        )
                    )

    def _owners(self) -> dict[str, Any]:
        life = self._g
        owners: dict[str, Any] = dict(life.blocks)
        owners.update({k: v for k, v in self.__dict__.items() if isinstance(v, Tensor)})
        owners.update({f"optimizer[{i}]": entry.optimizer for i, entry in enumerate(life.optimizers)})
        if life.scaler is not None:
            if life.optimizers:
                life.scaler.prepare(life.optimizers[0].optimizer.param_groups[0]["params"][0])
            owners["grad_scaler"] = life.scaler
        return owners

    def _zero(self, call: Call) -> Zero | None:
        config = self.config
        if not config.zero_stage:
            return None
        optimizers = [entry.optimizer for entry in self._g.optimizers]
        sizes = config.zero_stage, config.zero_min_size, config.zero_restore_level
        return Zero(*sizes, optimizers, call.tensors, self._g.blocks.values())

    def _program(self, state: State, call: Call, zero: Zero | None) -> Program:
        life = self._g
        options = self._options(state)
        key = self._key(state, call, options)
        found = life.programs.get(key)
        if found is None:
            self._announce(key, call)
            with collected_later():
                found, step = self._fitting(state, call, options, zero)
            options = self._options(state)  # a grid of devices may have been chosen
            key = self._key(state, call, options)  # the state lies as planned, layers may be checkpointed now
            found.scope, found.arguments = step.scope, runtime.arguments_of(call.leaves, call.structure)
            life.debug.traced(self, found)
            life.programs[key] = found
            while len(life.programs) > self.config.max_programs:
                life.programs.popitem(last=False)
        life.programs.move_to_end(key)
        life.latest = key, found
        return found

    def _options(self, state: State, place: Any = None) -> Options:
        """Return how a program is compiled on a placement; on that of the options, or of the state, by default."""
        auto = self.config.auto()
        if place is not None and auto is not None:
            auto = replace(auto, placement=place)
        place = None if auto is None else auto.placement
        return Options(
            lowering=self.config.lowering,
            roll=self.config.least_turns(_on_cpu(state) if place is None else place.type == "cpu"),
            auto=auto,
            **self.config.prices(None if isinstance(place, Hierarchies) else place or _placement_of(state)),
        )

    def _key(self, state: State, call: Call, options: Options) -> Signature:
        kept = tuple([(id(module), policy) for module, policy in checkpoints_of(self).items()])
        kept += tuple([(id(module), place) for module, place in stages_of(self).items()])
        key = signature_of(call, state, self.build, (self.config.key(), options, kept))
        return key._replace(modes=(("self", plain_attributes(self)), *key.modes))

    def _fitting(self, state: State, call: Call, options: Options, zero: Zero | None) -> tuple[Program, Step]:
        """Return a program and what it was traced from; under "AdaptiveMemory" layers are checkpointed to fit one."""
        sums = {} if zero is None else zero.sums(state.tensors)

        def made() -> tuple[Program, Lent | None, Step]:
            step = Step(self, state, sums)
            return *self._made(step, state, call, options, zero), step

        layers = equal_layers(self) if self.config.auto_memory == "AdaptiveMemory" else []
        program, lent, step = with_checkpoints(self.name, layers, made)
        if lent is not None:
            program.settle(lent, state)
        return program, step

    def _made(
        self, step: Step, state: State, call: Call, options: Options, zero: Zero | None
    ) -> tuple[Program, Lent | None]:
        """Return a program, and with auto parallelism the state's tensors for which it chose layouts."""
        asked = f"{self.name}.build"
        if options.auto is not None:
            return self._planned(step, state, call, options, zero)
        places = {t._layout.placement for t in (*state.tensors, *call.tensors) if t._layout is not None}
        if len(places) < 2:
            return Program(step, state, call, options, asked, zero), None
        from sbpjax.pipeline.program import PipelinedProgram  # only here: most programs have one placement

        return PipelinedProgram(step, state, call, options, asked, zero, self.config.pipeline_schedule), None

    def _planned(
        self, step: Step, state: State, call: Call, options: Options, zero: Zero | None
    ) -> tuple[Program, Lent]:
        """Return a program that chose the layouts of the state, which is local again, or lies as before."""
        asked = f"{self.name}.build"
        place = options.auto and options.auto.placement
        if not isinstance(place, Hierarchies):
            program, lent = planned(asked, step, state, call, options, zero)
            lent.give_back()
        else:

            def on(grid: Any) -> tuple[Any, float]:
                made = planned(asked, step, state, call, self._options(state, grid), zero)
                made[1].give_back()
                return made, made[0].plan.modelled_us

            (program, lent), self.config.auto_placement = fastest(place.candidates(), on)
        return program, lent

    def _announce(self, key: Signature, call: Call) -> None:
        """Say in one line why a further program is needed, or that none may be made."""
        latest = self._g.latest
        if latest is None:
            return
        what = difference(latest[0], key, call.paths(self.build), call.places)
        if self.config.static_inputs:
            raise StaticInputError(
                message(
                    f"{self.name}(...)",
                    what,
                    "config.set_static_inputs(True): one signature serves all calls",
                    "pad the input to the first shape, or config.set_static_inputs(False)",
                )
            )
        log.warning("%s compiles anew: %s", self.name, what)

    def _compile(self, program: Program) -> None:
        if not program.is_compiled:
            program.compile(to_run=True)
            self._g.debug.compiled(self, program)

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
        """Load what `state_dict` returned, before or after the first call; a resumed run continues bit by bit.

        Args:
            state_dict: the state.
            strict: raise for missing and unexpected keys too.

        Raises:
            StateDictError: keys, shapes or kinds do not fit; nothing is loaded then.
        """
        saving.load_state_dict(self, state_dict, strict)

    def runtime_state_dict(self, destination: dict | None = None, with_eager: bool = False) -> dict[str, Any]:
        """Return for which arguments the graph has programs, so that another process can compile them ahead.

        Args:
            destination: a dict to fill instead of a new one.
            with_eager: add what `state_dict` returns.
        """
        return runtime.runtime_state_dict(self, destination, with_eager)

    def load_runtime_state_dict(self, state_dict: dict[str, Any], *, warmup_with_run: bool = True) -> None:
        """Compile for the arguments that another graph had programs for.

        Args:
            state_dict: what `runtime_state_dict` returned.
            warmup_with_run: compile now; else trace and plan only. Nothing runs either way.
        """
        runtime.load_runtime_state_dict(self, state_dict, warmup_with_run)

    @staticmethod
    def runtime_state_dict_to(state_dict: dict[str, Any], device: Any) -> dict[str, Any]:
        """Return a runtime state whose local tensors lie on a device."""
        return runtime.runtime_state_dict_to(state_dict, device)

    def enable_save_runtime_state_dict(self, mode: bool = True) -> None:
        """Accepted for OneFlow's spelling: `runtime_state_dict` needs no preparation here."""

    def share_from(self, shared_graph: Graph) -> None:
        """Use the programs of another graph of the same class and modules; each compiles for both."""
        runtime.share(self, shared_graph)

    def enable_shared(self, mode: bool = True) -> None:
        """Accepted for OneFlow's spelling: programs always share the state of their modules."""

    # -- text ------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return report.text(self)

    def debug(
        self,
        v_level: int = -1,
        *,
        ranks: int | list[int] | None = None,
        max_py_stack_depth: int = 2,
        only_user_py_stack: bool = True,
        op_repr_with_py_stack: bool = False,
    ) -> None:
        """Print what happens when a program is made.

        Args:
            v_level: -1 nothing; 0 the phases with their times; 1 also every module with what goes in and out; 2 also
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
            def wrapped(self: Graph, *args: Any, **kwargs: Any) -> None:
                init(self, *args, **kwargs)
                self.config.set_max_programs(size)
                self.enable_shared(enable_shared)

            return wrapped

        return decorate


def _life(graph: Graph) -> _Life:
    found = graph.__dict__.get("_g")
    if found is None:
        raise GraphError(
            message(
                f"an attribute or a call of {type(graph).__name__}",
                "a graph whose __init__ did not run",
                "a subclass calls super().__init__() before anything else",
                "super().__init__()  # first line of __init__",
            )
        )
    return found
