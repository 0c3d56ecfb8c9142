"""Which program fits a call: the last one's, one of those kept, or one that is made now.

A call asks first whether anything has changed since the last one (identities), then whether there is a program of its
signature, and only then traces, plans, and says in one line why. A failure leaves optimizers and graph as they were.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import jax
from jax.core import Tracer

from sbpjax.errors import GraphError, StaticInputError, message
from sbpjax.sbp.hierarchies import Hierarchies, fastest
from sbpjax.tensor import Tensor

from . import runtime
from .auto import Lent, equal_layers, not_on_one_placement, with_checkpoints
from .capture import State, infos, plain_attributes
from .config import GraphConfig
from .garbage import collected_later
from .life import Last, Life, life_of
from .masters import keep_masters
from .program import Options, Program
from .proxy import CHANGES, checkpoints_of, stages_of
from .signature import Call, Signature, difference, signature_of
from .step import Step
from .zero import Zero

log = logging.getLogger("sbpjax.graph")


def _on_cpu(state: State) -> bool:
    """Return whether a program on this state runs on CPUs, present or not."""
    types = {t._layout.placement.type for t in state.tensors if t._layout is not None}
    return types == {"cpu"} if types else jax.default_backend() == "cpu"


def planned(asked: str, step: Step, state: State, call: Call, options: Options, zero: Zero | None):
    """Return a program that chose the layouts of a state, and the state's tensors that stand on its placement."""
    place = None if options.auto is None else options.auto.placement
    lent = Lent(state.tensors, None if isinstance(place, Hierarchies) else place)  # of grids one is tried at a time
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


class Fitting:
    """The base of `sbpjax.graph.Graph` that finds programs."""

    _g: Life
    config: GraphConfig
    name: Any
    build: Any

    def _prepared(self, args: tuple, kwargs: dict) -> tuple[State, Call, Program]:
        call = Call(args, kwargs)
        state, program = self._fit(call)
        return state, call, program

    def _fit(self, call: Call) -> tuple[State, Program]:
        """Return the state and the program for a call, the last one's if nothing has changed since."""
        life = life_of(self)
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
        life.last = Last(
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
                plan = made[0].plan
                return made, 0.0 if plan is None else plan.modelled_us

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
