"""The cases of the sweep over schedules of the learning rate: each alone, nested, with two groups, and resumed.

Plain Python, read by the tests and by `record_oneflow.py`. A case is the expression that makes the schedule, of ``S``
(the library's `lr_scheduler`) and ``o`` (the optimizer).
"""

import copy

STEPS = 25
RESUMED = 11  # a fresh optimizer and schedule go on from here with the state of the first
GRAPH_STEPS = 12
RATES = (0.1, 0.03)

ALONE = [
    "S.StepLR(o, 3)",
    "S.StepLR(o, step_size=4, gamma=0.5)",
    "S.StepLR(o, 1, 0.9)",
    "S.MultiStepLR(o, [3, 9, 10])",
    "S.MultiStepLR(o, milestones=[5, 5, 12], gamma=0.7)",
    "S.ExponentialLR(o, 0.9)",
    "S.ExponentialLR(o, gamma=1.05)",
    "S.LambdaLR(o, lambda step: 0.95 ** step)",
    "S.LambdaLR(o, [lambda step: 1 / (1 + step), lambda step: 0.9 ** (step // 2)])",
    "S.ConstantLR(o)",
    "S.ConstantLR(o, 0.5, 7)",
    "S.ConstantLR(o, factor=1.0, total_iters=3)",
    "S.LinearLR(o)",
    "S.LinearLR(o, 0.1, 0.8, 9)",
    "S.LinearLR(o, start_factor=1.0, end_factor=0.0, total_iters=10)",
    "S.CosineAnnealingLR(o, 10)",
    "S.CosineAnnealingLR(o, T_max=7, eta_min=0.01)",
    "S.CosineAnnealingLR(o, 30, 0.05)",
    "S.CosineAnnealingWarmRestarts(o, 6)",
    "S.CosineAnnealingWarmRestarts(o, 3, 2, 0.005)",
    "S.CosineAnnealingWarmRestarts(o, T_0=4, T_mult=1, eta_min=0.02)",
]
ONEFLOW_ALONE = [
    "S.CosineDecayLR(o, 10)",
    "S.CosineDecayLR(o, 14, 0.2)",
    "S.CosineAnnealingWarmRestarts(o, 4, 1, 0.001, 0.5)",
    "S.CosineAnnealingWarmRestarts(o, 4, 2, 0.001, decay_rate=0.7, restart_limit=2)",
    "S.CosineAnnealingWarmRestarts(o, 5, 1, 0.0, 1.0, 3)",
    "S.PolynomialLR(o, decay_batch=10)",
    "S.PolynomialLR(o, decay_batch=8, end_learning_rate=0.01, power=2.0)",
    "S.PolynomialLR(o, decay_batch=7, end_learning_rate=0.001, power=0.5, cycle=True)",
    "S.PolynomialLR(o, decay_batch=9, end_learning_rate=0.0, power=1.5, cycle=True)",
    *(
        f"S.{name}(o, {options})"
        for name in ("WarmUpLR", "WarmupLR")
        for options in ("", "0.1, 8", "0.2, 6, 'constant'", "warmup_factor=0.5, warmup_iters=4, warmup_prefix=True")
    ),
]
_INNER = [
    "S.StepLR(o, 4, 0.5)",
    "S.MultiStepLR(o, [6, 9], 0.3)",
    "S.ExponentialLR(o, 0.9)",
    "S.LambdaLR(o, lambda step: 0.95 ** step)",
    "S.LinearLR(o, 0.5, 1.0, 6)",
    "S.ConstantLR(o, 0.4, 8)",
    "S.CosineAnnealingLR(o, 9, 0.01)",
    "S.CosineAnnealingWarmRestarts(o, 5, 1, 0.01)",
]
_OWN = ["S.CosineDecayLR(o, 12, 0.1)", "S.PolynomialLR(o, decay_batch=10, end_learning_rate=0.001, power=2.0)"]
WARM = [
    f"S.WarmUpLR({inner}, 0.1, 5, {method!r}, {prefix})"
    for inner in _INNER + _OWN
    for method in ("linear", "constant")
    for prefix in (False, True)
] + [f"S.WarmUpLR({_INNER[0]}, warmup_factor=0.5, warmup_iters=0)"]
CHAINED = [f"S.ChainedScheduler([{a}, {b}])" for a in _INNER[:6] for b in _INNER[:6] if a < b]
CHAINED += [f"S.ChainedScheduler([{', '.join(_INNER[:3])}])", f"S.ChainedScheduler([{_INNER[0]}])"]
# a part with a formula of its own for going on: alone it says the rate, in a chain it moves the rate that is there
MIXED = [
    f"S.ChainedScheduler([{a}, {b}])"
    for a, b in [(_INNER[6], _INNER[2]), (_INNER[2], _INNER[6]), (_INNER[7], _INNER[0]), (_INNER[0], _INNER[7])]
]
SEQUENCES = [
    f"S.SequentialLR(o, [{a}, {b}], [5]{{}})"
    for a, b in [(_INNER[5], _INNER[2]), (_INNER[4], _INNER[6]), (_INNER[4], _INNER[0]), (_INNER[2], _INNER[1]),
                 (_INNER[0], _INNER[7])]
] + [f"S.SequentialLR(o, [{_INNER[4]}, {_INNER[2]}, {_INNER[0]}], [4, 11]{{}})"]  # fmt: skip
IN_SEQUENCE = [text.format("") for text in SEQUENCES]
RESCALED = [text.format(f", interval_rescaling={flag}") for text in SEQUENCES for flag in (True, False)]
RESCALED += [SEQUENCES[-1].format(", interval_rescaling=[True, False]")]
NESTED = [
    f"S.WarmUpLR({CHAINED[0]}, 0.1, 5)",
    f"S.WarmUpLR({RESCALED[0]}, 0.1, 4, 'linear', True)",
    f"S.SequentialLR(o, [S.WarmUpLR(o, 0.1, 4), {_INNER[2]}], [6], interval_rescaling=True)",
    f"S.ChainedScheduler([S.WarmUpLR(o, 0.5, 4), {_INNER[2]}])",
]

ONEFLOW = [*ALONE, *ONEFLOW_ALONE, *WARM, *CHAINED, *MIXED, *IN_SEQUENCE, *RESCALED, *NESTED]

TORCH_ONLY = [
    "S.PolynomialLR(o, 8)",
    "S.PolynomialLR(o, total_iters=11, power=2.0)",
    "S.MultiplicativeLR(o, lambda step: 0.9)",
    "S.MultiplicativeLR(o, [lambda step: 1 - step / 100, lambda step: 0.95])",
    "S.CyclicLR(o, 0.01, 0.1, 4, cycle_momentum=False)",
    "S.CyclicLR(o, 0.01, 0.1, 3, 5, mode='triangular2', cycle_momentum=False)",
    "S.CyclicLR(o, [0.01, 0.001], [0.1, 0.2], 4, mode='exp_range', gamma=0.9, cycle_momentum=False)",
    "S.CyclicLR(o, 0.01, 0.1, 4, scale_fn=lambda x: 0.5, scale_mode='iterations', cycle_momentum=False)",
    "S.OneCycleLR(o, 0.3, total_steps=30, cycle_momentum=False)",
    "S.OneCycleLR(o, [0.3, 0.1], epochs=6, steps_per_epoch=5, pct_start=0.4, anneal_strategy='linear', "
    "cycle_momentum=False)",
    "S.OneCycleLR(o, 0.3, total_steps=30, three_phase=True, div_factor=10, final_div_factor=50, cycle_momentum=False)",
]
TORCH = [*ALONE, *CHAINED, *MIXED, *IN_SEQUENCE, *TORCH_ONLY]


def rates_of(code):
    """Return the rates of the two groups; OneFlow's linear warm-up into a schedule takes groups of one rate only."""
    return (0.1, 0.1) if code.startswith("S.WarmUpLR(S.") else RATES


def optimizer_of(library, code):
    """Return an SGD of two groups, each with one parameter at zero."""
    make = library.nn.Parameter
    return library.optim.SGD([{"params": [make(library.zeros(1))], "lr": rate} for rate in rates_of(code)], lr=1.0)


def made(code, schedules, optimizer):
    """Return the schedule that an expression makes."""
    return eval(code, {"S": schedules, "o": optimizer})


def run_eager(code, library, schedules):
    """Return the rates of both groups at every step, and where they are others if resumed in the middle, those.

    Args:
        code: the expression.
        library: OneFlow, sbpjax or PyTorch.
        schedules: its `lr_scheduler`.
    """
    optimizer = optimizer_of(library, code)
    schedule = made(code, schedules, optimizer)
    rates, states = [_rates(optimizer)], None
    for step in range(STEPS):
        if step == RESUMED:
            states = attempt(lambda: copy.deepcopy((optimizer.state_dict(), schedule.state_dict())))
        optimizer.step()
        schedule.step()
        rates.append(_rates(optimizer))
    if isinstance(states, str):
        return {"rates": rates, "resumed": states}
    resumed = attempt(lambda: _resumed(code, library, schedules, *states))
    return {"rates": rates} if resumed == rates[RESUMED:] else {"rates": rates, "resumed": resumed}


def _resumed(code, library, schedules, of_optimizer, of_schedule):
    optimizer = optimizer_of(library, code)
    schedule = made(code, schedules, optimizer)
    optimizer.load_state_dict(of_optimizer)
    schedule.load_state_dict(of_schedule)
    rates = [_rates(optimizer)]
    for _ in range(RESUMED, STEPS):
        optimizer.step()
        schedule.step()
        rates.append(_rates(optimizer))
    return rates


def attempt(run):
    """Return what a function returns, or the name of the error that it raises."""
    try:
        return run()
    except Exception as error:
        return type(error).__name__


def run_graph(codes, library, schedules):
    """Return per expression the rates by which one graph with an optimizer and a schedule for each moves."""

    class Model(library.nn.Module):
        def __init__(self):
            super().__init__()
            for i in range(len(codes) * len(RATES)):
                setattr(self, f"p{i}", library.nn.Parameter(library.zeros(1)))

        def forward(self, x):
            return sum((getattr(self, f"p{i}") * x).sum() for i in range(len(codes) * len(RATES)))

    class Train(library.nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model
            params = list(model.parameters())
            for i, code in enumerate(codes):
                own = params[i * len(RATES) : (i + 1) * len(RATES)]
                groups = [{"params": [p], "lr": rate} for p, rate in zip(own, rates_of(code))]
                optimizer = library.optim.SGD(groups, lr=1.0)
                self.add_optimizer(optimizer, lr_sch=made(code, schedules, optimizer))

        def build(self, x):
            loss = self.model(x)
            loss.backward()
            return loss

    model = Model()
    graph, ones, moved = Train(model), library.ones(1), []
    for _ in range(GRAPH_STEPS):
        with library.no_grad():
            for p in model.parameters():
                p.zero_()
        graph(ones)
        moved.append([-float(p.detach().numpy()[0]) for p in model.parameters()])
    each = len(RATES)
    return [[row[i * each : (i + 1) * each] for row in moved] for i in range(len(codes))]


def _rates(optimizer):
    return [float(group["lr"]) for group in optimizer.param_groups]
