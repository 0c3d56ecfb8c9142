"""Op table: reductions (sums, extremes, moments, norms). Sums over a split dim are partial sums.

Of a method several dims may be arguments of their own: ``x.sum(0, 1)`` is ``x.sum((0, 1))``.
"""

from __future__ import annotations

from ..table.table import FN, METHOD, NOTHING_SAVED, op, written

REDUCTIONS = "sbpjax._core.functions.reductions"
READ = FN | METHOD
NUMPY = {"axis": "dim", "keepdims": "keepdim"}

op("sum(input, dim=None, keepdim=False, *, dtype=None)", "reductions.reduce.sum", READ, several="dim",
   saves=NOTHING_SAVED,
   amp="accelerator:float32")  # fmt: skip
op(
    "mean(input, dim=None, keepdim=False, *, dtype=None)",
    "reductions.reduce.mean",
    READ,
    several="dim",
    saves=NOTHING_SAVED,
)
op("nansum(input, dim=None, keepdim=False, dtype=None)", "reductions.reduce.nansum", READ, several="dim")
op("nanmean(input, dim=None, keepdim=False, dtype=None)", "reductions.reduce.nanmean", READ, several="dim")
op("prod(input, dim=None, keepdim=False, *, dtype=None)", "reductions.reduce.prod", READ, amp="float32")
op("all(input, dim=None, keepdim=False)", "reductions.reduce.all", READ)
op("any(input, dim=None, keepdim=False)", "reductions.reduce.any", READ)
op("amax(input, dim=None, keepdim=False)", "reductions.reduce.amax", READ, several="dim")
op("amin(input, dim=None, keepdim=False)", "reductions.reduce.amin", READ, several="dim")
op("aminmax(input, *, dim=None, keepdim=False)", "reductions.reduce.aminmax", READ, result="min max")
op("argmax(input, dim=None, keepdim=False, dtype=None)", "reductions.reduce.argmax", READ, exact_out=True)
op("argmin(input, dim=None, keepdim=False, dtype=None)", "reductions.reduce.argmin", READ, exact_out=True)
op("count_nonzero(input, dim=None)", "reductions.reduce.count_nonzero", READ, several="dim")
op("hash_tensor(input, dim=(), *, keepdim=False, mode=0)", "reductions.reduce.hash_tensor", READ, exact_out=True)
op("logsumexp(input, dim=None, keepdim=False)", "reductions.reduce.logsumexp", READ, also="special.logsumexp",
   several="dim",
   amp="accelerator:float32")  # fmt: skip
written("max min", REDUCTIONS, READ, names=NUMPY)
written("var std", REDUCTIONS, READ, names=NUMPY, out=True)
written("var_mean std_mean", REDUCTIONS, names=NUMPY)
written("norm", REDUCTIONS, READ, names=NUMPY, amp="accelerator:float32")
