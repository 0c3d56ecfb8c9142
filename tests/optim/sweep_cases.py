"""The cases of the sweep over optimizers: every option, and pairs of options that work on each other.

Plain Python, read by the tests and by `record_oneflow.py`, which runs where OneFlow is and sbpjax is not. A case is a
dict: the optimizer, its options, whether gradients are clipped, and what its group or groups say of their own.
"""

import itertools

import numpy as np

STEPS = 20
KEPT = (1, 5, 20)  # after these steps the parameters are compared
SHAPES = [(2, 3), (3,)]


def start():
    """Return the parameters before the first step."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def slopes():
    """Return per step the gradients of the parameters."""
    rng = np.random.default_rng(1)
    return [[rng.standard_normal(shape).astype(np.float32) for shape in SHAPES] for _ in range(STEPS)]


def _product(optimizer, fixed=None, /, **choices):
    for values in itertools.product(*choices.values()):
        yield {"optimizer": optimizer, "options": {**(fixed or {}), **dict(zip(choices, values))}}


BOTH = (False, True)
_CLIPS = [
    {"clip_grad_max_norm": 0.5},
    {"clip_grad_max_norm": 0.5, "clip_grad_norm_type": 1.0},
    {"clip_grad_max_norm": 0.3, "clip_grad_norm_type": float("inf")},
    {"clip_grad_max_norm": 100.0, "clip_grad_norm_type": 2.0},
]
_PAIR = [{"lr": 0.02}, {"lr": 0.2, "weight_decay": 0.3}]


def _of_both():
    """Yield the cases in options that OneFlow has; PyTorch has most of them."""
    momentum = (0.0, 0.9)
    yield from _product(
        "SGD", {"lr": 0.05}, momentum=momentum, dampening=(0.0, 0.3), weight_decay=(0.0, 0.1), nesterov=BOTH,
        maximize=BOTH,
    )  # fmt: skip
    for name in ("Adam", "AdamW"):
        yield from _product(
            name, {"lr": 0.03}, weight_decay=(0.0, 0.2), amsgrad=BOTH, do_bias_correction=BOTH,
            betas=((0.9, 0.999), (0.5, 0.8)), eps=(1e-8, 1e-2),
        )  # fmt: skip
    yield from _product(
        "Adagrad", {"lr": 0.1}, lr_decay=(0.0, 0.1), weight_decay=(0.0, 0.1), initial_accumulator_value=(0.0, 0.5),
        eps=(1e-10, 1e-2),
    )  # fmt: skip
    yield from _product(
        "RMSprop", {"lr": 0.02}, alpha=(0.99, 0.7), weight_decay=(0.0, 0.1), momentum=momentum, centered=BOTH,
        eps=(1e-8, 1e-2),
    )  # fmt: skip
    yield from _product(
        "Adadelta", {}, lr=(1.0, 0.3), rho=(0.9, 0.6), eps=(1e-6, 1e-3), weight_decay=(0.0, 0.1), maximize=BOTH
    )
    yield from _product(
        "LAMB", {"lr": 0.05}, weight_decay=(0.0, 0.1), adam_w_mode=BOTH, do_bias_correction=BOTH,
        betas=((0.9, 0.999), (0.5, 0.8)),
    )  # fmt: skip
    yield from _product(
        "Ftrl", {"lr": 0.3}, weight_decay=(0.0, 0.1), lr_power=(-0.5, 0.5), initial_accumulator_value=(0.1, 0.5),
        lambda1=(0.0, 0.2), lambda2=(0.0, 0.1), beta=(0.0, 1.0),
    )  # fmt: skip
    for name in ("SGD", "Adam", "AdamW"):
        options = {"lr": 0.05, "weight_decay": 0.1} | ({"momentum": 0.9} if name == "SGD" else {})
        yield {"optimizer": name, "options": options | {"fused": True}}
    for name in ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "LAMB"):
        yield {"optimizer": name, "options": {"lr": 0.05}, "groups": _PAIR}
        yield {"optimizer": name, "options": {"lr": 0.05}, "group": {"contiguous_params": True}}
        for clip in _CLIPS:
            yield {"optimizer": name, "options": {"lr": 0.05}, "group": clip}
    yield {"optimizer": "SGD", "options": {"lr": 0.05}, "group": {"lr_scale": 0.1}}
    yield {"optimizer": "Adam", "options": {"lr": 0.05}, "groups": [{"lr_scale": 0.5}, {"lr_scale": 2.0}]}


def _of_torch():
    """Yield the cases of what PyTorch has and OneFlow has not."""
    for name in ("Adam", "AdamW", "Adagrad", "RMSprop"):
        yield from _product(name, {"lr": 0.05, "maximize": True}, weight_decay=(0.0, 0.1))
    yield from _product("Adam", {"lr": 0.05, "weight_decay": 0.2, "decoupled_weight_decay": True}, amsgrad=BOTH)
    yield from _product("RMSprop", {"lr": 0.05, "maximize": True, "momentum": 0.9}, centered=BOTH)
    decay = (0.0, 0.1)
    yield from _product("Adamax", {"lr": 0.05}, betas=((0.9, 0.999), (0.5, 0.8)), weight_decay=decay, maximize=BOTH)
    for name in ("NAdam", "RAdam"):
        yield from _product(
            name, {"lr": 0.05}, betas=((0.9, 0.999), (0.5, 0.8)), weight_decay=decay, decoupled_weight_decay=BOTH,
            maximize=BOTH,
        )  # fmt: skip
    yield from _product("NAdam", {"lr": 0.05}, momentum_decay=(0.0, 0.05))
    yield from _product("ASGD", {"lr": 0.05}, lambd=(1e-4, 0.1), alpha=(0.75, 0.3), t0=(1e6, 3), weight_decay=decay)
    yield from _product("Rprop", {"lr": 0.05}, etas=((0.5, 1.2), (0.3, 1.5)), step_sizes=((1e-6, 50), (0.01, 0.1)))
    yield from _product("Rprop", {"lr": 0.05}, maximize=BOTH)
    yield from _product(
        "Adafactor", {"lr": 0.05}, beta2_decay=(-0.8, -0.5), d=(1.0, 2.0), weight_decay=decay, maximize=BOTH
    )
    for name in ("Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "Adafactor"):
        pair = _PAIR if name != "Rprop" else [{"lr": 0.02}, {"lr": 0.2}]
        yield {"optimizer": name, "options": {"lr": 0.05}, "groups": pair}
    for options in ({"foreach": True}, {"capturable": False}, {"foreach": False, "maximize": True}):
        yield {"optimizer": "Adam", "options": {"lr": 0.05, **options}}


def name_of(case):
    """Return a case as text, which is its key in the recorded facts."""
    options = ", ".join(f"{k}={v!r}" for k, v in case["options"].items())
    own = "".join(f" [{group}]" for group in case.get("groups", [case["group"]] if "group" in case else []))
    return f"{case['optimizer']}({options}){own}"


ONEFLOW = {name_of(case): case for case in _of_both()}
TORCH_ONLY = {name_of(case): case for case in _of_torch()}


def make(case, find, params):
    """Return the case's optimizer over two parameters.

    Args:
        case: the case.
        find: returns the class of a name.
        params: the parameters.
    """
    cls = find(case["optimizer"])
    if "groups" in case:
        groups = [{"params": [p], **own} for p, own in zip(params, case["groups"])]
    else:
        groups = [{"params": list(params), **case["group"]}] if "group" in case else list(params)
    return cls(groups, **case["options"])


def clips(case):
    """Return whether the case's group says how far its gradients are clipped."""
    return "clip_grad_max_norm" in case.get("group", {})


def run_eager(case, find, parameter, tensor, clip=None):
    """Return the parameters after the steps of `KEPT`, in one list of numbers each.

    Args:
        case: the case.
        find: returns the class of a name.
        parameter: makes a parameter of an array.
        tensor: makes a tensor of an array.
        clip: clips the gradients of an optimizer; its own `clip_grad` if None.
    """
    params = [parameter(array) for array in start()]
    optimizer, kept = make(case, find, params), []
    for step, gradients in enumerate(slopes(), 1):
        optimizer.zero_grad()
        sum((p * tensor(g)).sum() for p, g in zip(params, gradients)).backward()
        if clips(case):
            (clip or type(optimizer).clip_grad)(optimizer)
        optimizer.step()
        if step in KEPT:
            kept.append(flat(params))
    return kept


def run_graph(cases, library, find):
    """Return what `run_eager` returns for each case, from one graph that holds the optimizers of all of them."""

    class Many(library.nn.Module):
        def __init__(self):
            super().__init__()
            for i, array in enumerate(start() * len(cases)):
                setattr(self, f"p{i}", library.nn.Parameter(library.tensor(array)))

        def forward(self, *gradients):
            places = range(len(cases) * len(SHAPES))
            return sum((getattr(self, f"p{i}") * gradients[i % len(gradients)]).sum() for i in places)

    class Train(library.nn.Graph):
        def __init__(self, model, optimizers):
            super().__init__()
            self.model = model
            for optimizer in optimizers:
                self.add_optimizer(optimizer)

        def build(self, *gradients):
            loss = self.model(*gradients)
            loss.backward()
            return loss

    model = Many()
    params, each = list(model.parameters()), len(SHAPES)
    own = [params[i : i + each] for i in range(0, len(params), each)]
    graph = Train(model, [make(case, find, mine) for case, mine in zip(cases, own)])
    found = [[] for _ in cases]
    for step, gradients in enumerate(slopes(), 1):
        graph(*(library.tensor(g) for g in gradients))
        if step in KEPT:
            for kept, mine in zip(found, own):
                kept.append(flat(mine))
    return found


def flat(params):
    """Return the elements of tensors in one list."""
    return [float(x) for p in params for x in p.detach().numpy().reshape(-1)]
