"""`oneflow.optim`: optimizers with OneFlow's defaults; `sbpjax.optim` has PyTorch's."""

from sbpjax import optim

from .defaults import with_defaults

Adagrad = with_defaults(__name__, optim.Adagrad, "with a rate of 0.001 unless told otherwise", lr=1e-3)
AdamW = with_defaults(__name__, optim.AdamW, "that decays no weights unless told to", weight_decay=0)
