"""Program selection for a call: the last program, a cached one, or a new trace.

A call first compares identities with the last one, then looks for a program of its signature, and only then traces and
plans, with one logged line about the reason. A failure leaves optimizers and graph as they were.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sbpjax._core.runtime.gc_pause import pause_gc
from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.calls.op_errors import check_leaked
from sbpjax._core.tensor.storage.payload import is_traced
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State, infos, plain_attributes
from sbpjax._core.tracing.escaped_tensors import MOST_ATTEMPTS, Recaptured
from sbpjax._core.tracing.signature import Call, Signature, as_tensor, difference, signature_of
from sbpjax.errors import GraphError, StaticInputError
from sbpjax.graph.auto.graph import AbstractState, checkpoint_to_fit, equal_layers, several_placements_error
from sbpjax.optim import run
from sbpjax.optim.optimizer import Optimizer
from sbpjax.sbp.hierarchies import Hierarchies, fastest

from .graph_state import LastCall, internals_of
from .module_proxy import CHANGES, checkpoints_of, stages_of
from .program import runtime
from .program.build_program import build_program, check_repeats
from .program.program import Options, Program
from .program.zero import Zero
from .repeated_layers import device_type
from .step import GraphStep

pipeline = LazyModule("sbpjax.graph.pipeline.program")  # most programs have one placement


def plan_with_layouts(
    operation: str, step: GraphStep, state: State, call: Call, options: Options, zero: Zero | None
) -> tuple[Program, AbstractState]:
    """Return a program that chose the layouts of a state, and a function that applies them; the state is unchanged."""
    place = None if options.auto is None else options.auto.placement
    with AbstractState(
        state.tensors, None if isinstance(place, Hierarchies) else place
    ) as stand_ins:  # or grid by grid
        places = {t.layout.placement for t in (*state.tensors, *call.tensors) if t.layout is not None}
        if len(places) > 1:
            raise several_placements_error(operation, places)
        return build_program(step, state, call, options, operation, zero), stand_ins


def _placement_of(state: State) -> Any:
    """Return the placement of a state's first global tensor, None if it has none."""
    return next((t.layout.placement for t in state.tensors if t.layout is not None), None)


def prepare_program(graph: Any, args: tuple, kwargs: dict) -> tuple[State, Program, Call]:
    """Return the state and the program of a graph for arguments, abstract or not, and the flattened call."""
    leaves, structure = tree.flatten((args, kwargs))
    args, kwargs = tree.unflatten(structure, map(as_tensor, leaves))
    call = Call(args, kwargs)
    return *select_program(graph, call), call


def find_program(graph: Any, name: str) -> Program:
    """Return the program of a graph's last call, for a method of a name that was given no arguments.

    Raises:
        GraphError: the graph was not built.
    """
    if internals_of(graph).latest is None:
        rule = "a program is made for arguments: those of the last call, or those given"
        fix = f"graph.{name}(x, y), with the arguments of build, abstract ones too; or call the graph first"
        raise GraphError(f"{graph.name}.{name}()", "no arguments, and a graph that was not built", rule, fix)
    return graph.program


def prepared_or_last(graph: Any, name: str, args: tuple, kwargs: dict) -> tuple[State, Program]:
    """Return the state and the program of a graph for a method's arguments, or of its last call if there are none."""
    if args or kwargs:
        return prepare_program(graph, args, kwargs)[:2]
    program, last = find_program(graph, name), graph._g.last
    return (State(owners_of(graph)) if last is None else last.state), program


def select_program(graph: Any, call: Call) -> tuple[State, Program]:
    """Return the state and the program for a call, the last one's if nothing has changed since."""
    own = internals_of(graph)
    last = own.last
    attributes = list(graph.__dict__.values())
    # Cheapest questions first: most calls differ from the last one in nothing, and each list of a large model's tensors
    # costs tens of microseconds.
    settled = last is not None and last.program.unsettled is None
    if settled and last.structure == call.structure and last.state.is_unchanged():
        tensors, arguments = last.state.infos(), infos(call.tensors)
        if (
            tensors == last.tensors
            and arguments == last.arguments
            and last.config == (graph.config.key(), CHANGES[0])
            # By identity: ``build`` may read any attribute, and their equality may be elementwise, or expensive.
            and list(map(id, attributes)) == list(map(id, last.attributes))
            and call.static() == last.static
        ):
            last.tensors, last.arguments = tensors, arguments
            return last.state, last.program
    # Whatever fails below, the next call must not take the fast path to a program of other arguments.
    own.last = None
    check_leaked(*call.tensors)
    if any(is_traced(t) for t in call.tensors):
        raise GraphError(
            f"{graph.name}(...)",
            "a call of a graph inside a traced program",
            "a graph is a whole program; only its modules can run inside another one",
            "call the module in build, and leave the graph out",
        )
    # A failed trace must keep no moments: they would have layouts of a program that was never made.
    before = [(e.optimizer, {p: s.copy() for p, s in e.optimizer.state.items()}) for e in own.optimizers]
    # Before the state is listed: master weights are a part of it.
    undo = _keep_masters([e.optimizer for e in own.optimizers]) if graph.config.amp else None
    try:
        zero = _zero(graph, call)
        if zero is not None:
            # Before the state is listed: divided state is made divided, and is never whole on a device.
            zero.divide_state()
        for attempt in range(MOST_ATTEMPTS):
            state = State(owners_of(graph), attempt)
            _check_optimizers(graph, state)
            with contextlib.suppress(Recaptured):
                program = _program(graph, state, call, zero)
                break
    # Ctrl-C too: a trace takes seconds, and leaves no half-made state.
    except BaseException:
        if undo is not None:
            undo()
        # The state that was made for the trace goes with it.
        for optimizer, tensors in before:
            optimizer.state.clear()
            optimizer.state.update(tensors)
        raise
    own.last = LastCall(
        state,
        state.infos(),
        call.structure,
        call.static(),
        infos(call.tensors),
        (graph.config.key(), CHANGES[0]),
        attributes,
        program,
    )
    return state, program


def _check_optimizers(graph: Any, state: State) -> None:
    """Refuse an optimizer of a parameter that a module had and has no longer: its updates would go nowhere."""
    names = {id(t): name for name, t in zip(state.names, state.tensors, strict=True)}
    known = graph._g.trained
    for i, entry in enumerate(graph._g.optimizers):
        for param in (p for group in entry.optimizer.param_groups for p in group["params"]):
            name = names.get(id(param), "")
            if not name.startswith(f"optimizer[{i}]"):
                # With the parameter beside its id, so that the id is not given to another.
                known[id(param)] = param, name
            elif id(param) in known:
                raise GraphError(
                    f"{graph.name}(...)",
                    f"{known[id(param)][1]} is another Parameter now",
                    f"{type(entry.optimizer).__name__} updates the one that the module no longer has",
                    "write into the old one with param.data = value, or make a new optimizer and graph",
                )


def owners_of(graph: Any) -> dict[str, Any]:
    """Return the tensors that a graph's steps may change, by name: the argument of `State`."""
    own = graph._g
    owners: dict[str, Any] = dict(own.blocks)
    owners.update({k: v for k, v in graph.__dict__.items() if isinstance(v, Tensor)})
    owners.update({f"written[{i}]": tensor for i, tensor in enumerate(own.taken)})
    owners.update({f"optimizer[{i}]": entry.optimizer for i, entry in enumerate(own.optimizers)})
    if own.scaler is not None:
        if own.optimizers:
            own.scaler.prepare(own.optimizers[0].optimizer.param_groups[0]["params"][0])
        owners["grad_scaler"] = own.scaler
    return owners


def _zero(graph: Any, call: Call) -> Zero | None:
    config = graph.config
    if not config.zero_stage:
        return None
    optimizers = [entry.optimizer for entry in graph._g.optimizers]
    sizes = config.zero_stage, config.zero_min_size, config.zero_restore_level
    return Zero(*sizes, optimizers, call.tensors, graph._g.blocks.values())


def _program(graph: Any, state: State, call: Call, zero: Zero | None) -> Program:
    own = graph._g
    options = options_of(graph, state)
    key = _key(graph, state, call, options)
    found = own.programs.get(key)
    if found is not None and found.unsettled is not None:
        check_repeats(found, GraphStep(graph, state, {}), state, call)
    if found is None:
        change = _find_change(graph, key, call)
        with pause_gc():
            found, step = _build_fitting_program(graph, state, call, options, zero)
        options = options_of(graph, state)  # a grid of devices may have been chosen
        # The state is laid out as planned, layers may be checkpointed now.
        key = _key(graph, state, call, options)
        found.change = change
        found.scope, found.arguments = step.scope, runtime.arguments_of(call.leaves, call.structure)
        own.debug.print_trace(graph, found)
        own.programs[key] = found
        # Least recently used first: with batches of ever new sizes a program each would fill the memory.
        while len(own.programs) > graph.config.max_programs:
            own.programs.popitem(last=False)
    own.programs.move_to_end(key)
    own.latest = key, found
    return found


def options_of(graph: Any, state: State, place: Any = None) -> Options:
    """Return the compile options for a placement; for that of the options, or of the state, by default."""
    auto = graph.config.auto()
    if place is not None and auto is not None:
        auto = replace(auto, placement=place)
    place = None if auto is None else auto.placement
    many = isinstance(place, Hierarchies)
    where = None if many else place or _placement_of(state)
    ranks = place.count if many else 1 if where is None else where.size
    return Options(
        lowering=graph.config.lowering,
        roll=graph.config.least_iterations(device_type(state.tensors) if place is None else place.type, ranks),
        auto=auto,
        compiler_options=tuple(sorted(graph.config.compiler_options.items())),
        engine=graph.config.engine,
        **graph.config.prices(where),
    )


def _key(graph: Any, state: State, call: Call, options: Options) -> Signature:
    # By identity: the graph holds its modules, so an id is not given to another one meanwhile.
    kept = tuple([(id(module), policy) for module, policy in checkpoints_of(graph).items()])
    kept += tuple([(id(module), place) for module, place in stages_of(graph).items()])
    key = signature_of(call, state, graph.build, (graph.config.key(), options, kept))
    return key._replace(modes=(("self", plain_attributes(graph)), *key.modes))


def _build_fitting_program(
    graph: Any, state: State, call: Call, options: Options, zero: Zero | None
) -> tuple[Program, GraphStep]:
    """Return a program and the step it was traced from; under "AdaptiveMemory" layers are checkpointed to fit."""
    sums = {} if zero is None else zero.sums(state.tensors)

    def make() -> tuple[Program, AbstractState | None, GraphStep]:
        step = GraphStep(graph, state, sums)
        return *_make_program(graph, step, state, call, options, zero), step

    layers = equal_layers(graph) if graph.config.auto_memory == "AdaptiveMemory" else []
    program, stand_ins, step = checkpoint_to_fit(graph.name, layers, make)
    if stand_ins is not None:
        program.lay_out(stand_ins, state)
    return program, step


def _make_program(
    graph: Any, step: GraphStep, state: State, call: Call, options: Options, zero: Zero | None
) -> tuple[Program, AbstractState | None]:
    """Return a program, and with auto parallelism the function that lays the state out as planned."""
    operation = f"{graph.name}.build"
    if options.auto is None:
        places = {t.layout.placement for t in (*state.tensors, *call.tensors) if t.layout is not None}
        # Pipelines have no other mark: a state on several placements is one.
        if len(places) < 2:
            return build_program(step, state, call, options, operation, zero), None
        return pipeline.PipelinedProgram(
            step, state, call, options, operation, zero, graph.config.pipeline_schedule
        ), None
    place = options.auto.placement
    if not isinstance(place, Hierarchies):
        return plan_with_layouts(operation, step, state, call, options, zero)

    def on(grid: Any) -> tuple[Any, float]:
        made = plan_with_layouts(operation, step, state, call, options_of(graph, state, grid), zero)
        plan = made[0].plan
        return made, 0.0 if plan is None else plan.modelled_us

    made, graph.config.auto_placement = fastest(place.candidates(), on)
    return made


def _find_change(graph: Any, key: Signature, call: Call) -> str:
    """Return why a further program is needed, empty of the first one; raise if none may be made."""
    latest = graph._g.latest
    if latest is None:
        return ""
    change = difference(latest[0], key, call.paths(graph.build), call.places)
    if graph.config.static_inputs:
        raise StaticInputError(
            f"{graph.name}(...)",
            change,
            "config.set_static_inputs(True): one signature serves all calls",
            "pad the input to the first shape, or config.set_static_inputs(False)",
        )
    return change


def _keep_masters(optimizers: Sequence[Optimizer]) -> Callable[[], None]:
    """Switch master weights on for groups with a parameter of lower precision; return a function that reverts it.

    Float32 parameters are their own masters: their casts are part of the program. A parameter that is bfloat16 or
    float16 itself would lose every update smaller than 1/256 of it. A group that sets ``"master_weights"`` itself is
    left as it is.
    """
    changed = []
    for group in (group for optimizer in optimizers for group in optimizer.param_groups):
        if "master_weights" not in group and any(run.is_low(p.dtype) for p in group["params"]):
            group["master_weights"] = True
            changed.append(group)

    def undo() -> None:
        for group in changed:
            del group["master_weights"]

    return undo
