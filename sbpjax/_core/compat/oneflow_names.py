"""`oneflow.optim`, its `lr_scheduler` and `nn.parallel`: OneFlow's defaults where `sbpjax` has PyTorch's."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from sbpjax import optim
from sbpjax.distributed import data_parallel
from sbpjax.optim import lr_scheduler

REQUIRED = Parameter.empty


def with_defaults(module: str, kind: type, says: str, order: str = "", **defaults: Any) -> Any:
    """Return a subclass of the same name.

    ``order``: the names of the arguments that it takes, by position or by name; by default those of the class.
    """
    known = signature(kind).parameters
    taken = [known[name].replace(kind=Parameter.POSITIONAL_OR_KEYWORD) for name in order.split()] or known.values()
    taken = signature(kind).replace(parameters=[p.replace(default=defaults.get(p.name, p.default)) for p in taken])

    def __init__(self, *args: Any, **options: Any) -> None:
        bound = taken.bind(*args, **options)
        bound.apply_defaults()
        given = dict(bound.arguments)
        kind.__init__(self, **given.pop("implementation", {}), **given)

    doc = f"`{kind.__module__}.{kind.__name__}` {says}; see there for the options."
    fields = {"__init__": __init__, "__signature__": taken, "__doc__": doc, "__module__": module}
    return type(kind.__name__, (kind,), fields)


Adagrad = with_defaults(__name__, optim.Adagrad, "with a default rate of 0.001", lr=1e-3)
AdamW = with_defaults(__name__, optim.AdamW, "without weight decay by default", weight_decay=0)
SequentialLR = with_defaults(
    __name__,
    lr_scheduler.SequentialLR,
    "whose parts go on counting from the first step by default",
    "optimizer schedulers milestones interval_rescaling last_step verbose",
    interval_rescaling=False,
)
PolynomialLR = with_defaults(
    __name__,
    lr_scheduler.PolynomialLR,
    "with OneFlow's arguments in OneFlow's order",
    "optimizer decay_batch end_learning_rate power cycle last_step verbose",
    decay_batch=REQUIRED,
    end_learning_rate=0.0001,
)


class DistributedDataParallel(data_parallel.DistributedDataParallel):
    """Data parallelism under the names of the module inside, without ``module.`` before them.

    See `sbpjax.nn.parallel.DistributedDataParallel` for the options.
    """

    def state_dict(self, *args, **options):
        return self.module.state_dict(*args, **options)

    def load_state_dict(self, *args, **options):
        return self.module.load_state_dict(*args, **options)

    def named_parameters(self, *args, **options):
        return self.module.named_parameters(*args, **options)

    def named_buffers(self, *args, **options):
        return self.module.named_buffers(*args, **options)

    def named_children(self):
        return self.module.named_children()
