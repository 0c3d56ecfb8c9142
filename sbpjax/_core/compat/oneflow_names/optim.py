"""`oneflow.optim`: optimizers with OneFlow's defaults; `sbpjax.optim` has PyTorch's."""

from sbpjax import optim

from .defaults import with_defaults

Adagrad = with_defaults(__name__, optim.Adagrad, "with a default rate of 0.001", lr=1e-3)
AdamW = with_defaults(__name__, optim.AdamW, "without weight decay by default", weight_decay=0)
