"""Where an optimizer or a schedule does not do what OneFlow 0.9 or PyTorch does, and why.

A difference is a name, the library, a function that says of a case whether it is in the class, and the reason. The
tests fail for a case that differs and is in no class, and for a class in which every case is equal.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """A class of cases that differ from a library, and the reason."""

    library: str
    covers: Callable[[Any], bool]
    reason: str


def _has(case, **options):
    return all(case["options"].get(name) == value for name, value in options.items())


def _clip_without_type(case):
    return "clip_grad_max_norm" in case.get("group", {}) and "clip_grad_norm_type" not in case["group"]


def _adamw_by_default(case):
    return case["optimizer"] == "AdamW" and "weight_decay" not in case["options"]


OPTIMIZERS = [
    Difference(
        "oneflow",
        lambda c: c["optimizer"] == "SGD" and _has(c, maximize=True, momentum=0.0),
        "OneFlow descends although told to climb: `maximize` without momentum has no effect there, but for a warning",
    ),
    Difference(
        "oneflow",
        lambda c: c["optimizer"] == "SGD" and _has(c, maximize=True, momentum=0.9) and c["options"]["weight_decay"] > 0,
        "with `maximize` OneFlow's weight decay lets weights grow; here it decays them, as in PyTorch",
    ),
    Difference(
        "oneflow",
        lambda c: c["optimizer"] == "RMSprop" and c["options"].get("momentum", 0) > 0,
        "OneFlow refuses a momentum of RMSprop",
    ),
    Difference(
        "oneflow",
        lambda c: c["optimizer"] == "Adadelta" and _has(c, maximize=True),
        "OneFlow refuses `maximize` of Adadelta",
    ),
    Difference(
        "oneflow",
        _clip_without_type,
        "OneFlow does not clip, but for a warning, unless `clip_grad_norm_type` is given too; here the 2-norm is meant",
    ),
    Difference(
        "oneflow",
        _adamw_by_default,
        "AdamW decays weights by 0.01 unless told otherwise, as in PyTorch; OneFlow's default is 0, which is Adam",
    ),
    Difference(
        "torch",
        lambda c: c["optimizer"] == "SGD" and _has(c, nesterov=True) and not _has(c, momentum=0.9, dampening=0.0),
        "PyTorch refuses Nesterov's momentum without momentum or with dampening; OneFlow takes it",
    ),
    Difference(
        "torch",
        lambda c: c["optimizer"] == "SGD" and _has(c, momentum=0.9, dampening=0.3),
        "dampening takes part in the first step, as in OneFlow; PyTorch leaves it out there",
    ),
    Difference(
        "torch",
        lambda c: c["optimizer"] == "RMSprop",
        "`eps` of RMSprop stands under the root, as in OneFlow; PyTorch adds it to the root",
    ),
]

SCHEDULES = [
    Difference(
        "oneflow",
        lambda code: "LambdaLR" in code,
        "OneFlow cannot save a LambdaLR, nor run one in a graph; here the functions stay, and the steps are saved",
    ),
    Difference(
        "oneflow",
        lambda code: "ChainedScheduler" in code,
        "OneFlow cannot run a ChainedScheduler in a graph, nor one around a warm-up",
    ),
    Difference(
        "oneflow",
        lambda code: "[5, 5, 12]" in code,
        "OneFlow wants milestones to differ; PyTorch counts one that comes twice twice",
    ),
    Difference(
        "oneflow",
        lambda code: "S.WarmUpLR(S.SequentialLR" in code or "[S.WarmUpLR" in code,
        "OneFlow cannot put a SequentialLR into a warm-up, nor a warm-up into another schedule",
    ),
    Difference(
        "oneflow",
        lambda code: code.startswith("S.SequentialLR") and "interval_rescaling" not in code,
        "each part of a SequentialLR counts from its milestone, as in PyTorch, unless `interval_rescaling=False`, "
        "which is OneFlow's default",
    ),
    Difference(
        "oneflow",
        lambda code: "cycle=True" in code,
        "with `cycle` OneFlow begins with the rate of step 1, and never has the rate that it was given",
    ),
    Difference(
        "oneflow",
        lambda code: "interval_rescaling=[True, False]" in code,
        "OneFlow's graph counts otherwise than its own eager step; here both are as eager",
    ),
    Difference(
        "torch",
        lambda code: "Chained" in code and ("Lambda" in code or "Cosine" in code),
        "in a chain each schedule takes the rate of the one before, as in OneFlow; PyTorch's LambdaLR sets the rate "
        "anew, and its cosines go on from what they find",
    ),
]
