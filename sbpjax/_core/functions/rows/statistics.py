"""Op table: statistics (distances, moments, integrals, counts). Splits of dims that are not reduced stay."""

from __future__ import annotations

from ..table.table import FN, INPLACE, METHOD, op, written

STATISTICS = "sbpjax._core.functions.statistics"
READ = FN | METHOD

op("dist(input, other, p=2.0)", "losses.distance.dist", READ)
op("cdist(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary')", "losses.distance.cdist",
   ignores="compute_mode", check="distance_mode", out=False)  # fmt: skip
op("renorm(input, p, dim, maxnorm)", "losses.distance.renorm", READ | INPLACE)
op("corrcoef(input)", "reductions.stats.corrcoef", READ)
op(
    "cov(input, *, correction=1, fweights=None, aweights=None)",
    "reductions.stats.cov",
    READ,
    check="observation_weights",
    out=False,
)
op("trapezoid(y, x=None, *, dx=1.0, dim=-1)", "reductions.stats.trapezoid", also="trapz", out=False)
op("cumulative_trapezoid(y, x=None, *, dx=1.0, dim=-1)", "reductions.stats.cumulative_trapezoid", out=False)
written("nanquantile", STATISTICS, READ, names={"axis": "dim"}, out=True)
written("gradient histogramdd", STATISTICS)
written("histogram", STATISTICS, READ, strict=True, out=True)
written("norm_except_dim", STATISTICS, strict=True)
written("frobenius_norm nuclear_norm", STATISTICS, out=True)
written("binomial unravel_index", STATISTICS)
written("Tensor.sum_to_size", STATISTICS)
