"""`oneflow.optim.lr_scheduler`: schedules with OneFlow's defaults; `sbpjax.optim.lr_scheduler` has PyTorch's."""

from sbpjax.optim import lr_scheduler

from .defaults import REQUIRED, with_defaults

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
