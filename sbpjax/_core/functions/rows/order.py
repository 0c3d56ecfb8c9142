"""Op table: sorting, ranking and cumulative ops along a dim, whole on every rank; other dims keep a split."""

from __future__ import annotations

from ..table.op_modules import cumulative, sort
from ..table.table import FN, METHOD, NOTHING_SAVED, OUTPUT, custom, op

STATISTICS = "sbpjax._core.functions.statistics"
ORDER = "sbpjax._core.functions.order"
READ = FN | METHOD

op("sort(input, dim=-1, descending=False, stable=False)", sort.sort, READ, result="values indices",
   oneflow_dtype="int32_indices", saves=NOTHING_SAVED)  # fmt: skip
op(
    "argsort(input, dim=-1, descending=False, stable=False)",
    sort.argsort,
    READ,
    oneflow_dtype="int32",
    out=False,
)
op("msort(input)", sort.msort, READ)
op("topk(input, k, dim=-1, largest=True, sorted=True)", sort.topk, READ, result="values indices",
   saves=NOTHING_SAVED)  # fmt: skip
op(
    "kthvalue(input, k, dim=-1, keepdim=False)",
    sort.kthvalue,
    READ,
    result="values indices",
    saves=NOTHING_SAVED,
)
op("mode(input, dim=-1, keepdim=False)", sort.mode, READ, result="values indices")
custom("quantile", STATISTICS, READ, names={"axis": "dim"}, out=True,
        oneflow="x=input q dim keepdim interpolation out", amp="cpu:float32")  # fmt: skip
op("cumsum(input, dim, dtype=None)", cumulative.cumsum, READ, amp="accelerator:float32")
op("cumprod(input, dim, dtype=None)", cumulative.cumprod, READ, saves=OUTPUT, amp="accelerator:float32")
op("logcumsumexp(input, dim)", cumulative.logcumsumexp, READ)
op("cummax(input, dim)", cumulative.cummax, READ, result="values indices", saves=NOTHING_SAVED)
op("cummin(input, dim)", cumulative.cummin, READ, result="values indices", saves=NOTHING_SAVED)
custom("median nanmedian", ORDER, READ, names={"axis": "dim", "keepdims": "keepdim"}, out=True)
custom("diff", ORDER, READ, names={"axis": "dim"}, out=True)
custom("isin", ORDER, out=True)
custom("Tensor.cumsum_ Tensor.cumprod_", ORDER)
