"""Training steps that are interrupted at chosen instructions, and what must hold of their state afterwards.

Whatever interrupts Python (a signal's handler, an exception that another thread asks for) comes between two
instructions. `interrupt_at` raises before a chosen line, instruction or return; `Machine` is a training whose whole
state can be compared with that after any number of whole steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax._core.tensor.handle.mode import mode

WARM = 4


class Stopped(BaseException):
    """What an interrupt raises; ``except Exception`` does not catch it, as it does not catch KeyboardInterrupt."""


def interrupt_at(step: Callable[[], Any], place: int, opcodes: bool = False, within: str = "/sbpjax/") -> bool:
    """Call a step and raise `Stopped` at one of its events; return whether it got to its end before.

    Args:
        step: the step.
        place: the number of the event, from 0.
        opcodes: whether instructions count, else lines.
        within: only events in files with this in their path count.
    """
    left, kind = place, "opcode" if opcodes else "line"

    def inside(frame, event, arg):
        nonlocal left
        if event == kind or event == "return":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise Stopped
        return inside

    def called(frame, event, arg):
        if within not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = opcodes
        return inside

    before = sys.gettrace()
    sys.settrace(called)
    try:
        step()
    except Stopped:
        pass
    finally:
        sys.settrace(before)
        # Between the lines of a block's end, where a trace raises and a signal's handler cannot.
        mode.grad, mode.walks, mode.ends = True, 0, None
    return left >= 0  # also where a generator that is closed swallows it


class Machine:
    """A training: what a step needs, and all its state.

    Args:
        module: the module, whose parameters and buffers count.
        optimizer: its optimizer.
        step: what is interrupted.
        before: what is not: forward and backward of an eager step.
        more: other tensors and numbers of the state.
    """

    def __init__(self, module, optimizer, step, before=lambda: None, more=lambda: {}):
        self.module, self.optimizer, self.step, self.before, self.more = module, optimizer, step, before, more

    def state(self) -> dict[str, Any]:
        """Return all values of the state; raises if one is lost."""
        found = dict(self.module.state_dict())
        for i, own in self.optimizer.state_dict()["state"].items():
            for name, value in own.items():
                parts = value if isinstance(value, list) else [value]
                found |= {f"{i}.{name}.{k}": part for k, part in enumerate(parts) if part is not None}
        for i, own in enumerate(self.optimizer.state_dict().get("shared", ())):
            found |= {f"shared.{i}.{name}": t for name, t in own.items()}
        found["rates"] = np.array([group["lr"] for group in self.optimizer.param_groups])
        found |= self.more()
        return {name: np.array(t.numpy() if isinstance(t, flow.Tensor) else t) for name, t in found.items()}


def equal(a: dict, b: dict) -> bool:
    """Return whether two states are the same, bit by bit."""
    return a.keys() == b.keys() and all(np.array_equal(x, b[name], equal_nan=True) for name, x in a.items())


def twins(training):
    """Return two equal trainings, of which the second does not see the random numbers of the first."""
    made = []
    for _ in range(2):
        flow.manual_seed(7)
        machine = training()
        machine.rng = flow.get_rng_state()
        made.append(machine)
    return made


def with_own_numbers(machine, function):
    flow.set_rng_state(machine.rng)
    try:
        return function()
    finally:
        machine.rng = flow.get_rng_state()


def whole_step(machine):
    def run():
        machine.before()
        machine.step()

    with_own_numbers(machine, run)
    return with_own_numbers(machine, machine.state)


def check(training, every=1, **how):
    """Interrupt a step at every event, one after the other, and compare the state with a twin's.

    Eager ops are compiled: an op that is evaluated so many times changes its bits when its program takes over.
    """
    flow.use_deterministic_algorithms(True)
    try:
        return _check(training, every, **how)
    finally:
        flow.use_deterministic_algorithms(False)


def _check(training, every, **how):
    machine, twin = twins(training)
    for _ in range(WARM):
        now = whole_step(machine)
        following = whole_step(twin)
    assert equal(now, following)
    following = whole_step(twin)
    place, steps, finished = 0, 0, False
    while not finished:

        def run(place=place):
            machine.before()
            return interrupt_at(machine.step, place, **how)

        finished = with_own_numbers(machine, run)
        found = with_own_numbers(machine, machine.state)
        if equal(found, following):
            now, following, steps = following, whole_step(twin), steps + 1
        else:
            different = sorted(name for name in found if not equal({0: found[name]}, {0: now[name]}))
            assert not different, f"torn by an interrupt at event {place}: {different} are of no whole step"
        place += 1 if finished else every
    assert steps > 0
    return place


# ------------------------------------------------------------------------------------------------------- trainings

PLACE = flow.placement("cpu", [0, 1])
STAGES = flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])


def net(place=None, width=4, drop=0.0):
    middle = nn.Dropout(drop) if drop else nn.Tanh()
    made = nn.Sequential(nn.Linear(width, width), middle, nn.Linear(width, width))
    return made if place is None else made.to_global(place, "B")


def inputs(place=None, width=4):
    x = flow.tensor(np.linspace(-1, 1, 8 * width, dtype=np.float32).reshape(8, width))
    return x if place is None else x.to_global(place, flow.sbp.split(0))


def eager(place=None, kind=optim.AdamW):
    model, x = net(place), inputs(place)
    optimizer = kind(model.parameters(), lr=0.05)

    def before():
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()

    return Machine(model, optimizer, optimizer.step, before)


def eager_global():
    return eager(PLACE)


def eager_views():
    """Parameters whose storage others show, as an average or a logger holds them."""
    made = eager()
    made.held = [p.detach() for p in made.module.parameters()]
    return made


def on_two_places(kind=optim.AdamW):
    """Half of the model on one placement, half of it on another, and a part on one device."""
    model = nn.ModuleList([net(STAGES[0]), net(STAGES[1]), net()])
    groups = [{"params": list(part.parameters())} for part in model]
    optimizer = kind(groups, lr=0.05)

    def before():
        optimizer.zero_grad(set_to_none=True)
        for part, place in zip(model, (*STAGES, None)):
            part(inputs(place)).square().mean().backward()

    return Machine(model, optimizer, optimizer.step, before)


def of_optax():
    import optax

    return on_two_places(lambda params, lr: optim.from_optax(optax.adam(lr), params))


def scaled():
    made = eager()
    scaler, optimizer = flow.amp.GradScaler(), made.optimizer

    def before():
        scaler._stages.clear()  # as `update` does, which counts the step
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(made.module(inputs()).square().mean()).backward()
        scaler.unscale_(optimizer)

    return Machine(made.module, optimizer, lambda: scaler.step(optimizer), before)


def averaged(**options):
    """An average of the weights, updated after every step."""
    made = eager()
    average = optim.swa_utils.AveragedModel(made.module, **options)
    return Machine(average, optim.SGD([flow.zeros(1)], lr=0.1), lambda: average.update_parameters(made.module))


def with_statistics():
    model, x = nn.BatchNorm1d(4, momentum=None), inputs()
    return Machine(model, optim.SGD(model.parameters(), lr=0.1), lambda: model(x))


def lbfgs(search=None):
    model, x = net(), inputs()
    optimizer = optim.LBFGS(model.parameters(), lr=0.1, max_iter=3, line_search_fn=search)

    def closure():
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return Machine(model, optimizer, lambda: optimizer.step(closure))


class Step(nn.Graph):
    def __init__(self, model, optimizer, schedule=None, accumulate=1, scaler=None, zero=0):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer, lr_sch=schedule)
        self.config.set_gradient_accumulation_steps(accumulate)
        if scaler is not None:
            self.set_grad_scaler(scaler)
        if zero:
            self.config.enable_zero(True, stage=zero)

    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


def rng():
    return {"rng": flow.get_rng_state()}


def in_graph(place=None, model=None, **options):
    model, x = net(place, drop=0.2) if model is None else model, inputs(place)
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    graph = Step(model, optimizer, **options)
    return Machine(model, optimizer, lambda: graph(x), more=rng)


def in_graph_global():
    return in_graph(PLACE)


def in_graph_divided():
    """ZeRO-3: the state of the graph is stored otherwise than its tensors lie."""
    return in_graph(PLACE, zero=3)


def in_graph_with_statistics():
    return in_graph(model=nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)))


def in_graph_scaled():
    model, x, scaler = net(), inputs(), flow.amp.GradScaler(growth_interval=2)
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    graph = Step(model, optimizer, scaler=scaler)
    more = lambda: {f"scaler.{i}": t for i, t in enumerate(scaler.state_tensors())} | rng()  # noqa: E731
    return Machine(model, optimizer, lambda: graph(x), more=more)


def in_graph_scheduled():
    model, x = net(), inputs()
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.999)
    graph = Step(model, optimizer, schedule)
    return Machine(model, optimizer, lambda: graph(x), more=lambda: rng() | {"step": schedule.last_step})


class Staged(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = net(STAGES[0], drop=0.2), net(STAGES[1])

    def forward(self, x):
        return self.second(self.first(x).to_global(STAGES[1], flow.sbp.split(0)))


def in_pipeline(accumulate=2):
    model, x = Staged(), inputs(STAGES[0])
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    graph = Step(model, optimizer, accumulate=accumulate)
    return Machine(model, optimizer, lambda: graph(x), more=rng)


def in_pipeline_of_one_batch():
    return in_pipeline(1)
