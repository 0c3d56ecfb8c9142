"""Reductions over all dims, one, or several."""

from __future__ import annotations

from tests.op_specs.engine import op
from tests.support.generate import Dtype, call


def _reduction(
    names: str,
    kinds: str = "fhib",
    several: bool = True,
    dtype: bool = False,
    special: bool = True,
    must: bool = False,
    empty: bool = True,
    **options,
) -> None:
    @op(names, **options)
    def make(g):
        x = g.tensor(kinds=kinds, special=special, max_dim=4, empty=empty)
        kwargs = {}
        dim = g.dims(x, none=not must) if several else g.dim(x) if must or g.flag() else None
        if dim is not None:
            kwargs = {"dim": dim, **({"keepdim": True} if g.flag() else {})}
        if dtype and g.flag():
            kwargs["dtype"] = Dtype("float64")
        return call(x, **kwargs)


_reduction("sum nansum", "fhib", dtype=True)
_reduction("mean nanmean", "fh", dtype=True)
_reduction("prod", "fib", several=False, dtype=True)
_reduction("all any", "fib", several=False)
_reduction("amax amin", "fhib", empty=False)
_reduction("argmax argmin", "fhi", several=False, empty=False)
_reduction("max min", "fhib", several=False, empty=False)
_reduction("logsumexp", "f", must=True)
_reduction("aminmax", "fi", several=False, empty=False, must=True)


@op("count_nonzero")
def _(g):
    x = g.tensor(kinds="fib", max_dim=4)
    dim = g.dims(x)
    return call(x) if dim is None else call(x, dim=dim)


@op("hash_tensor")
def _(g):
    x = g.tensor(kinds="fhib", max_dim=4, empty=False)
    return call(x, **g.pick({}, {"dim": g.dim(x)}, {"dim": g.dim(x), "keepdim": True}))


@op("std var std_mean var_mean")
def _(g):
    x = g.tensor(kinds="f", max_dim=4, empty=False)
    dim = g.dims(x)
    kwargs = {} if dim is None else {"dim": dim, "keepdim": g.flag()}
    return call(x, **kwargs, **g.pick({}, {"unbiased": False}, {"correction": 0}, {"correction": 2}))


@op("norm")
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    dim = g.dims(x)
    kwargs = {} if dim is None else {"dim": dim, "keepdim": g.flag()}
    return call(x, g.pick(2, 1, 3.0, float("inf"), -float("inf"), 0, "fro"), **kwargs)


@op("max min")
def _(g):
    x = g.tensor(kinds="fhib", max_dim=4, special=True, empty=False)
    how = g.pick("all", "dim", "other")
    if how == "all":
        return call(x)
    if how == "other":
        return call(x, g.like(x))
    return call(x, g.dim(x), **({"keepdim": True} if g.flag() else {}))


@op("is_nonzero", traced=False, reason="gives a Python value")
def _(g):
    return call(g.tensor(g.pick((), (1,), (1, 1)), "fib"))
