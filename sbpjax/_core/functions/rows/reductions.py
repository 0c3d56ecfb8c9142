"""Op table: reductions (sums, extremes, moments, norms) and statistics. Sums over a split dim are partial sums.

Of a method several dims may be arguments of their own: ``x.sum(0, 1)`` is ``x.sum((0, 1))``.
"""

from __future__ import annotations

from ..table.op_modules import distance, reduce, stats
from ..table.table import FN, INPLACE, METHOD, NOTHING_SAVED, custom, op

REDUCTIONS = "sbpjax._core.functions.reductions"
STATISTICS = "sbpjax._core.functions.statistics"
READ = FN | METHOD
NUMPY = {"axis": "dim", "keepdims": "keepdim"}

op("sum(input, dim=None, keepdim=False, *, dtype=None)", reduce.sum, READ, several="dim",
   saves=NOTHING_SAVED,
   amp="accelerator:float32")  # fmt: skip
op(
    "mean(input, dim=None, keepdim=False, *, dtype=None)",
    reduce.mean,
    READ,
    several="dim",
    saves=NOTHING_SAVED,
)
op("nansum(input, dim=None, keepdim=False, dtype=None)", reduce.nansum, READ, several="dim")
op("nanmean(input, dim=None, keepdim=False, dtype=None)", reduce.nanmean, READ, several="dim")
op("prod(input, dim=None, keepdim=False, *, dtype=None)", reduce.prod, READ, amp="float32")
op("all(input, dim=None, keepdim=False)", reduce.all, READ)
op("any(input, dim=None, keepdim=False)", reduce.any, READ)
op("amax(input, dim=None, keepdim=False)", reduce.amax, READ, several="dim")
op("amin(input, dim=None, keepdim=False)", reduce.amin, READ, several="dim")
op("aminmax(input, *, dim=None, keepdim=False)", reduce.aminmax, READ, result="min max")
op("argmax(input, dim=None, keepdim=False, dtype=None)", reduce.argmax, READ, exact_out=True)
op("argmin(input, dim=None, keepdim=False, dtype=None)", reduce.argmin, READ, exact_out=True)
op("count_nonzero(input, dim=None)", reduce.count_nonzero, READ, several="dim")
op("hash_tensor(input, dim=(), *, keepdim=False, mode=0)", reduce.hash_tensor, READ, exact_out=True)
op("logsumexp(input, dim=None, keepdim=False)", reduce.logsumexp, READ, also="special.logsumexp",
   several="dim",
   amp="accelerator:float32")  # fmt: skip
custom("max min", REDUCTIONS, READ, names=NUMPY)
custom("var std", REDUCTIONS, READ, names=NUMPY, out=True)
custom("var_mean std_mean", REDUCTIONS, names=NUMPY)
custom("norm", REDUCTIONS, READ, names=NUMPY, amp="accelerator:float32")

op("dist(input, other, p=2.0)", distance.dist, READ)
op("cdist(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary')", distance.cdist,
   ignores="compute_mode", check="check_compute_mode", out=False)  # fmt: skip
op("renorm(input, p, dim, maxnorm)", distance.renorm, READ | INPLACE)
op("corrcoef(input)", stats.corrcoef, READ)
op(
    "cov(input, *, correction=1, fweights=None, aweights=None)",
    stats.cov,
    READ,
    check="check_observation_weights",
    out=False,
)
op("trapezoid(y, x=None, *, dx=1.0, dim=-1)", stats.trapezoid, also="trapz", out=False)
op("cumulative_trapezoid(y, x=None, *, dx=1.0, dim=-1)", stats.cumulative_trapezoid, out=False)
custom("nanquantile", STATISTICS, READ, names={"axis": "dim"}, out=True)
custom("gradient histogramdd", STATISTICS)
custom("histogram", STATISTICS, READ, strict=True, out=True)
custom("norm_except_dim", STATISTICS, strict=True)
custom("frobenius_norm nuclear_norm", STATISTICS, out=True)
custom("binomial unravel_index", STATISTICS)
custom("Tensor.sum_to_size", STATISTICS)
