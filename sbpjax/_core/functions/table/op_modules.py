"""The modules of `_core.ops` whose functions rows of the table name.

    op("exp(input)", elementwise.exp, ALL)

Editors see the function itself. When the package is imported, `elementwise` is a `LazyModule` and `elementwise.exp` a
`Reference`: importing all modules would lengthen ``import sbpjax`` by 6 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class Reference:
    """A function that is imported when its row is first used.

    Attributes:
        path: its module and name, below `_core.ops`.
    """

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class LazyModule:
    """A module of ops; its attributes are references.

    Attributes:
        path: its name below `_core.ops`.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        return Reference(f"{self.path}.{name}")


if TYPE_CHECKING:
    from sbpjax._core.ops import arithmetic as arithmetic
    from sbpjax._core.ops import compare as compare
    from sbpjax._core.ops import complex as complex_ops
    from sbpjax._core.ops import elementwise as elementwise
    from sbpjax._core.ops import powers as powers
    from sbpjax._core.ops.attention import fused as attention
    from sbpjax._core.ops.conv import conv as conv
    from sbpjax._core.ops.conv import grid_sample as grid_sample
    from sbpjax._core.ops.conv import pool as pool
    from sbpjax._core.ops.conv import resize as resize
    from sbpjax._core.ops.conv import unpool as unpool
    from sbpjax._core.ops.grouped_matmul import primitive as grouped_matmul
    from sbpjax._core.ops.layers import activation as activation
    from sbpjax._core.ops.layers import embedding as embedding
    from sbpjax._core.ops.layers import norm as norm
    from sbpjax._core.ops.linalg import decompose as decompose
    from sbpjax._core.ops.linalg import ldl as ldl
    from sbpjax._core.ops.linalg import matrix as matrix
    from sbpjax._core.ops.linalg import matrix_norm as matrix_norm
    from sbpjax._core.ops.linalg import products as products
    from sbpjax._core.ops.linalg import solve as solve
    from sbpjax._core.ops.losses import class_loss as class_loss
    from sbpjax._core.ops.losses import ctc as ctc
    from sbpjax._core.ops.losses import distance as distance
    from sbpjax._core.ops.losses import loss as loss
    from sbpjax._core.ops.losses import margin_loss as margin_loss
    from sbpjax._core.ops.reductions import cumulative as cumulative
    from sbpjax._core.ops.reductions import reduce as reduce
    from sbpjax._core.ops.reductions import sort as sort
    from sbpjax._core.ops.reductions import stats as stats
    from sbpjax._core.ops.shapes import arrange as arrange
    from sbpjax._core.ops.shapes import gather as gather
    from sbpjax._core.ops.shapes import place as place
    from sbpjax._core.ops.signals import fft as fft
    from sbpjax._core.ops.special import bessel as bessel
    from sbpjax._core.ops.special import gamma as gamma
    from sbpjax._core.ops.special import pairs as pairs
    from sbpjax._core.ops.special import polynomials as polynomials
    from sbpjax._core.ops.special import special as special
else:
    activation = LazyModule("layers.activation")
    arithmetic = LazyModule("arithmetic")
    arrange = LazyModule("shapes.arrange")
    attention = LazyModule("attention.fused")
    bessel = LazyModule("special.bessel")
    class_loss = LazyModule("losses.class_loss")
    compare = LazyModule("compare")
    complex_ops = LazyModule("complex")
    conv = LazyModule("conv.conv")
    ctc = LazyModule("losses.ctc")
    cumulative = LazyModule("reductions.cumulative")
    decompose = LazyModule("linalg.decompose")
    distance = LazyModule("losses.distance")
    elementwise = LazyModule("elementwise")
    embedding = LazyModule("layers.embedding")
    fft = LazyModule("signals.fft")
    gamma = LazyModule("special.gamma")
    gather = LazyModule("shapes.gather")
    grid_sample = LazyModule("conv.grid_sample")
    grouped_matmul = LazyModule("grouped_matmul.primitive")
    ldl = LazyModule("linalg.ldl")
    loss = LazyModule("losses.loss")
    margin_loss = LazyModule("losses.margin_loss")
    matrix = LazyModule("linalg.matrix")
    matrix_norm = LazyModule("linalg.matrix_norm")
    norm = LazyModule("layers.norm")
    pairs = LazyModule("special.pairs")
    place = LazyModule("shapes.place")
    polynomials = LazyModule("special.polynomials")
    pool = LazyModule("conv.pool")
    powers = LazyModule("powers")
    products = LazyModule("linalg.products")
    reduce = LazyModule("reductions.reduce")
    resize = LazyModule("conv.resize")
    solve = LazyModule("linalg.solve")
    sort = LazyModule("reductions.sort")
    special = LazyModule("special.special")
    stats = LazyModule("reductions.stats")
    unpool = LazyModule("conv.unpool")
