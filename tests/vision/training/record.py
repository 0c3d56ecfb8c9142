"""Write what timm's schedules, losses and clipping give: ``python -m tests.vision.training.record``, where timm is."""

from __future__ import annotations

import json
import pathlib

import numpy as np

DATA = pathlib.Path(__file__).parent / "data" / "facts.json"
BASE, TIMES = 0.3, 40
# schedule: (ours, timm's class, arguments)
SCHEDULES = {
    "cosine": ("Cosine", "CosineLRScheduler", {"t_initial": 20, "lr_min": 0.01}),
    "cosine warm": ("Cosine", "CosineLRScheduler", {"t_initial": 20, "warmup_t": 5, "warmup_lr_init": 0.02}),
    "cosine cycles": ("Cosine", "CosineLRScheduler",
                      {"t_initial": 6, "cycle_mul": 2.0, "cycle_decay": 0.5, "cycle_limit": 2, "k_decay": 1.5}),
    "cosine prefix": ("Cosine", "CosineLRScheduler",
                      {"t_initial": 20, "warmup_t": 5, "warmup_prefix": True, "cycle_limit": 2}),
    "poly": ("Poly", "PolyLRScheduler", {"t_initial": 20, "power": 0.9, "lr_min": 0.01, "k_decay": 0.5}),
    "poly cycles": ("Poly", "PolyLRScheduler",
                    {"t_initial": 8, "cycle_limit": 3, "cycle_decay": 0.3, "warmup_t": 3, "warmup_lr_init": 0.1}),
    "tanh": ("Tanh", "TanhLRScheduler", {"t_initial": 20, "lr_min": 0.01}),
    "tanh warm": ("Tanh", "TanhLRScheduler", {"t_initial": 20, "warmup_t": 6, "lb": -4.0, "ub": 4.0}),
    "tanh prefix": ("Tanh", "TanhLRScheduler",
                    {"t_initial": 10, "warmup_t": 6, "warmup_prefix": True, "cycle_limit": 2, "cycle_mul": 1.5}),
    "step": ("Step", "StepLRScheduler", {"decay_t": 7, "decay_rate": 0.5, "warmup_t": 3}),
    "step whole": ("Step", "StepLRScheduler",
                   {"decay_t": 2.4, "decay_rate": 0.9, "warmup_t": 3, "warmup_prefix": False}),
    "multistep": ("MultiStep", "MultiStepLRScheduler", {"decay_t": (5, 9, 30), "decay_rate": 0.5, "warmup_t": 2}),
}  # fmt: skip


def inputs() -> dict[str, np.ndarray]:
    """Return logits, labels, shares, a parameter and its gradient, the same at every call."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(5), 4).astype(np.float32)
    made = {"logits": rng.standard_normal((4, 5)).astype(np.float32), "labels": rng.integers(0, 5, 4), "shares": shares}
    for name, shape in (("matrix", (3, 4)), ("vector", (6,)), ("kernel", (2, 3, 2, 2))):
        made[name] = 0.1 * rng.standard_normal(shape).astype(np.float32)
        made[f"{name} gradient"] = rng.standard_normal(shape).astype(np.float32) * 0.01
    return made


def main() -> None:
    """Write the file."""
    import torch
    from timm import loss, scheduler
    from timm.utils.agc import adaptive_clip_grad

    facts: dict[str, list | float] = {}
    for name, (_, kind, options) in SCHEDULES.items():
        options = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=BASE)
        found = getattr(scheduler, kind, None) or getattr(
            __import__("timm.scheduler.multistep_lr", fromlist=["x"]), kind
        )
        steps = found(optimizer, **options)
        rates = []
        for t in range(TIMES):
            steps.step(t)
            rates.append(optimizer.param_groups[0]["lr"])
        facts[name] = rates
    given = {name: torch.tensor(value) for name, value in inputs().items()}
    facts["smoothed"] = loss.LabelSmoothingCrossEntropy(0.2)(given["logits"], given["labels"]).item()
    facts["soft"] = loss.SoftTargetCrossEntropy()(given["logits"], given["shares"]).item()
    facts["binary"] = loss.BinaryCrossEntropy(0.1)(given["logits"], given["labels"]).item()
    facts["binary shares"] = loss.BinaryCrossEntropy(0.1, 0.2)(given["logits"], given["shares"]).item()
    facts["binary sums"] = loss.BinaryCrossEntropy(0.1, sum_classes=True)(given["logits"], given["labels"]).item()
    for name in ("matrix", "vector", "kernel"):
        parameter = torch.nn.Parameter(given[name])
        parameter.grad = given[f"{name} gradient"].clone()
        adaptive_clip_grad([parameter], 0.05)
        facts[name] = parameter.grad.tolist()
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
