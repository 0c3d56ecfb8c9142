"""`oneflow.optim`: where OneFlow's defaults are not PyTorch's, which `sbpjax.optim` has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from sbpjax import optim
from sbpjax.optim.options import Choices, Implementation


class Adagrad(optim.Adagrad):
    """`sbpjax.optim.Adagrad` with a rate of 0.001 unless told otherwise; see there for the options."""

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        super().__init__(
            params, lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize=maximize, **implementation
        )


class AdamW(optim.AdamW):
    """`sbpjax.optim.AdamW` that decays no weights unless told to; see there for the options."""

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        do_bias_correction: bool = True,
        fused: bool | None = None,
        *,
        maximize: bool = False,
        **implementation: Unpack[Choices],
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            do_bias_correction,
            fused,
            maximize=maximize,
            **implementation,
        )
