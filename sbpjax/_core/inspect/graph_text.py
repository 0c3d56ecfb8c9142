"""Text of a graph: ``repr`` before and after it was built, and `debug` output while a program is made.

    (GRAPH:Train_0:Train): (
      (CONFIG:config:GraphConfig(training=True, …))
      (PLACEMENT:p0:sbpjax.placement(type="cpu", ranks=[[0, 1], [2, 3]]))
      (INPUT:x:tensor(size=(8, 8), dtype=sbpjax.float32, placement=p0, sbp=(S0, B)))
      (MODULE:model:Linear(in_features=8, out_features=4, bias=True)): (
        (INPUT:input:tensor(size=(8, 8), …, sbp=(S0, B)))
        (PARAMETER:model.weight:tensor(size=(4, 8), …, sbp=(B, S0), requires_grad=True))
        (OUTPUT:output:tensor(size=(8, 4), …, sbp=(S0, S1)))
      )
      (OUTPUT:output:tensor(size=(), …))
    )

Parameters and buffers are known before; inputs and outputs, once a program was traced. The sbp of a value inside the
program is the plan's: `ModuleSbps` finds it by the module whose name the equations carry.
"""

from __future__ import annotations

from typing import Any

import jax

from sbpjax._core.jax_private import Var
from sbpjax._core.programs.normalise import is_backward, scopes_of, source_line
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.dtype import _BY_NP
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.signature import TensorSpec, argument_paths
from sbpjax.sbp import algebra

_INDENT = "  "


def text(graph: Any) -> str:
    """Return the text of a graph; see `Graph.__repr__`."""
    own = graph._g
    program = None if own.latest is None else own.latest[1]
    sbps = None if program is None or program.plan is None else ModuleSbps(program.plan)
    names = _Names()
    lines: list[str] = []
    if program is not None:
        leaves, structure = tree.flatten(program.arguments)
        for path, leaf in zip(argument_paths(structure, graph.build), leaves, strict=True):
            if isinstance(leaf, TensorSpec):
                lines.append(f"(INPUT:{path}:{_spec(leaf, names)})")
    for name, module in own.blocks.items():
        lines += _module(graph, name, module, program, sbps, names)
    for i, entry in enumerate(own.optimizers):
        schedule = "" if entry.scheduler is None else f", lr_sch={type(entry.scheduler).__name__}"
        sparse = ", is_sparse=True" if entry.is_sparse else ""
        lines.append(
            f"(OPTIMIZER:optimizer[{i}]:{type(entry.optimizer).__name__}(lr={_rates(entry)}{schedule}{sparse}))"
        )
    if own.scaler is not None:
        lines.append(f"(GRAD_SCALER:{type(own.scaler).__name__})")
    if program is not None:
        lines += _outputs(program, names)
        lines.append(f"(PROGRAM:{phases(program)})")
    lines = [_config(graph.config), *(f"(PLACEMENT:{name}:{place!r})" for place, name in names.items()), *lines]
    body = "\n".join(_INDENT + line for entry in lines for line in entry.split("\n"))
    return f"(GRAPH:{graph.name}:{type(graph).__name__}): (\n{body}\n)"


class _Names(dict):
    """The placements of a graph, each named when it is first met; every tensor shows the name."""

    def __missing__(self, placement: Any) -> str:
        name = self[placement] = f"p{len(self)}"
        return name


def _config(config: Any) -> str:
    options = [line.strip().replace(": ", "=", 1) for line in repr(config).split("\n")[1:-1]]
    return f"(CONFIG:config:GraphConfig({', '.join(options)}))"


def _rates(entry: Any) -> str:
    rates = [group["lr"] for group in entry.optimizer.param_groups]
    return repr(rates[0] if len(set(rates)) == 1 else rates)


def _spec(spec: Any, names: _Names) -> str:
    sbp = None if spec.sbp is None else algebra.parse(spec.sbp, spec.placement, len(spec.shape))
    return _tensor(spec.shape, spec.dtype, spec.placement, sbp, names)


def _tensor(shape, dtype, placement, codes, names: _Names | None, more: str = "") -> str:
    where = "" if placement is None else f", placement={repr(placement) if names is None else names[placement]}"
    if placement is not None:
        where += f", sbp=({', '.join(map(algebra.name, codes))})" if codes is not None else ", sbp=?"
    return f"tensor(size={tuple(shape)}, dtype={dtype!r}{where}{more})"


def _tensor_text(tensor: Tensor, names: _Names) -> str:
    layout = tensor.layout
    placement, codes = (None, None) if layout is None else (layout.placement, layout.codes)
    more = ", requires_grad=True" if tensor.requires_grad else ""
    return _tensor(tensor.shape, tensor.dtype, placement, codes, names, more)


def _module(graph: Any, path: str, module: Any, program: Any, sbps: ModuleSbps | None, names: _Names) -> list[str]:
    options = graph._g.options.get(module)
    head = type(module).__name__ + (f"({module.extra_repr()})" if not module._modules else "()")
    if options is not None and options.activation_checkpointing is not False:
        head += f", activation_checkpointing={options.activation_checkpointing}"
    if options is not None and options.stage_id is not None:
        head += f", stage_id={options.stage_id}"
    body = []
    calls = [] if program is None else program.scope.calls.get(path, [])
    for call in calls:
        body += [f"(INPUT:{name}:{text})" for name, text in _inputs(path, module, call, sbps, names)]
    for kind, table in (("PARAMETER", module._parameters), ("BUFFER", module._buffers)):
        body += [f"({kind}:{path}.{name}:{_tensor_text(t, names)})" for name, t in table.items() if t is not None]
    for name, child in module._modules.items():
        if child is not None:
            body += _module(graph, f"{path}.{name}", child, program, sbps, names)
    for call in calls:
        body += [f"(OUTPUT:{name}:{text})" for name, text in _results(path, call, sbps, names)]
    if not body:
        return [f"(MODULE:{path}:{head}): ()"]
    return [f"(MODULE:{path}:{head}): (", *(_INDENT + line for entry in body for line in entry.split("\n")), ")"]


def _inputs(path: str, module: Any, call: Any, sbps: ModuleSbps | None, places: _Names) -> list[tuple[str, str]]:
    names = argument_paths(call.arguments, module.forward)
    return [
        (n, _describe_value(path, x, sbps, "ins", places))
        for n, x in zip(names, call.inputs, strict=True)
        if x is not None
    ]


def _results(path: str, call: Any, sbps: ModuleSbps | None, places: _Names) -> list[tuple[str, str]]:
    names = tree.paths(call.results, "output")
    return [
        (n, _describe_value(path, x, sbps, "outs", places))
        for n, x in zip(names, call.outputs, strict=True)
        if x is not None
    ]


def _describe_value(path: str, seen: Any, sbps: ModuleSbps | None, side: str, names: _Names | None = None) -> str:
    codes = None if sbps is None else sbps.find(path, side, seen.shape)
    return _tensor(seen.shape, seen.dtype, seen.placement, codes, names)


def _outputs(program: Any, names: _Names) -> list[str]:
    found, results = [], program.outputs.results
    avals = program.jaxpr.out_avals[len(program.written) :]
    layouts = program.out_layouts[len(program.written) :]
    tensors = iter(zip(avals, layouts, program.outputs.are_global, strict=True))
    for path, static in zip(tree.paths(results.structure, "output"), results.static, strict=True):
        if static is not None:
            continue
        aval, layout, is_global = next(tensors)
        placement, codes = (layout.placement, layout.codes) if is_global else (None, None)
        found.append(f"(OUTPUT:{path}:{_tensor(aval.shape, _BY_NP[aval.dtype], placement, codes, names)})")
    return found


def phases(program: Any) -> str:
    """Return the time of each phase of making a program, in words."""
    names = {"trace": "traced", "plan": "planned", "compile": "compiled"}
    timings = [f"{names.get(key, key)} in {seconds:.2f} s" for key, seconds in program.seconds.items()]
    return ", ".join(timings if program.is_compiled else [*timings, "not compiled yet"])


def module_of(eqn: Any) -> str:
    """Return the dotted name of the module in whose call an equation was traced, forward or backward."""
    return ".".join(scopes_of(eqn))


class ModuleSbps:
    """The sbps with which values go into modules and come out of them, in one plan.

    A value goes in if an equation of the module's forward reads it and none of them made it; it comes out if one made
    it and an equation elsewhere (or the backward) reads it.
    """

    def __init__(self, plan: Any) -> None:
        self._found: dict[tuple[str, str, tuple], list] = {}
        self._of(plan)

    def _of(self, plan: Any) -> None:
        made: dict[Any, tuple[str, Any]] = {}
        forward = [None if is_backward(e) else module_of(e) for e in plan.program.eqns]
        for i, eqn in enumerate(plan.program.eqns):
            if i in plan.bodies:
                self._of(plan.bodies[i])
            name = forward[i]
            for v, wanted in zip(eqn.invars, plan.ins(i) if eqn.invars else (), strict=True):
                if not isinstance(v, Var):
                    continue
                maker, codes = made.get(v, ("", wanted))
                for path in _entered_modules(name, maker):
                    self._found.setdefault((path, "ins", _shape(v)), []).append(wanted)
                for path in _entered_modules(maker, name):
                    self._found.setdefault((path, "outs", _shape(v)), []).append(codes)
            for v, codes in zip(eqn.outvars, plan.outs(i), strict=True):
                if name is not None:
                    made[v] = name, codes
        for v in plan.program.outvars:
            if isinstance(v, Var) and v in made:
                name, codes = made[v]
                for path in _entered_modules(name, None):
                    self._found.setdefault((path, "outs", _shape(v)), []).append(codes)

    def find(self, path: str, side: str, shape: tuple) -> tuple | None:
        """Return the nd-sbp of a value of a shape that goes into a module (``ins``) or comes out (``outs``)."""
        found = self._found.get((path, side, tuple(shape)))
        if not found:
            return None
        return found[0] if side == "ins" else found[-1]


def _shape(v: Any) -> tuple:
    return tuple(v.aval.shape)


def _entered_modules(inner: str | None, outer: str | None) -> list[str]:
    """Return the names of the modules around an equation that are not around another one."""
    if not inner:
        return []
    parts = inner.split(".")
    names = [".".join(parts[: n + 1]) for n in range(len(parts))]
    return [n for n in names if not (outer and (outer == n or outer.startswith(f"{n}.")))]


class Debug:
    """Debug output of a graph while programs are made; see `Graph.debug`."""

    def __init__(self) -> None:
        self.level = -1
        self.with_stack = False
        self.modules: dict[str, int] = {}

    def set(self, level: int, ranks: Any, depth: int, only_user: bool, with_stack: bool) -> None:
        """Set the options of `Graph.debug`."""
        self.level = level if _is_printing_rank(ranks) else -1
        self.with_stack = with_stack

    def set_module(self, name: str, level: int, ranks: Any) -> None:
        """Set the options of `GraphModule.debug`."""
        self.modules[name] = level if _is_printing_rank(ranks) else -1

    def print_trace(self, graph: Any, program: Any) -> None:
        """Print the results of a trace and a plan."""
        seconds = program.seconds
        if self.level >= 0:
            count = sum(1 for _ in program.jaxpr.jaxpr.eqns)
            print(f"[{graph.name}] traced in {seconds['trace']:.3f} s ({count} equations)")
            moved = "" if program.plan is None else f" ({program.plan.bytes} B per device and call)"
            print(f"[{graph.name}] planned in {seconds['plan']:.3f} s{moved}")
        level = max([self.level, *self.modules.values()])
        if level < 1 and not any(v >= 0 for v in self.modules.values()):
            return
        sbps = None if program.plan is None else ModuleSbps(program.plan)
        for path, calls in program.scope.calls.items():
            if self.level < 1 and not any(v >= 0 and _inside(path, n) for n, v in self.modules.items()):
                continue
            for call in calls:
                ins = ", ".join(_describe_value(path, x, sbps, "ins") for x in call.inputs if x is not None)
                outs = ", ".join(_describe_value(path, x, sbps, "outs") for x in call.outputs if x is not None)
                print(f"[{graph.name}] (MODULE:{path}) {ins} → {outs}")
        self._equations(graph, program)
        if self.level >= 3 and program.plan is not None:
            for boxing in program.plan.boxings:
                print(f"[{graph.name}] (BOXING) {boxing}")

    def _equations(self, graph: Any, program: Any) -> None:
        if max([self.level, *self.modules.values()]) < 2:
            return
        plan = program.plan
        eqns = program.jaxpr.jaxpr.eqns if plan is None else plan.program.eqns
        for i, eqn in enumerate(eqns):
            path = module_of(eqn)
            if self.level < 2 and not any(v >= 2 and _inside(path, n) for n, v in self.modules.items()):
                continue
            shapes = ", ".join(_short(v.aval) for v in eqn.outvars)
            signature = ""
            if plan is not None:
                ins = " | ".join(map(algebra.nd_name, plan.ins(i) if eqn.invars else ()))
                signature = f" {ins} → {' | '.join(map(algebra.nd_name, plan.outs(i)))}"
            line = f" at {source_line(eqn)}" if self.with_stack and source_line(eqn) else ""
            way = "backward " if is_backward(eqn) else ""
            print(f"[{graph.name}] (OP:{path}:{way}{eqn.primitive.name}) {shapes}{signature}{line}")

    def print_compile_time(self, graph: Any, program: Any) -> None:
        """Print the time of a compilation."""
        if self.level >= 0:
            print(f"[{graph.name}] compiled in {program.seconds['compile']:.3f} s")


def _inside(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def _short(aval: Any) -> str:
    return f"{getattr(aval, 'dtype', '')}{list(getattr(aval, 'shape', ()))}"


def _is_printing_rank(ranks: Any) -> bool:
    """Return whether this process is among the ranks that print."""
    if ranks == -1:
        return True
    wanted = [0] if ranks is None else [ranks] if isinstance(ranks, int) else list(ranks)
    return jax.process_index() in wanted
