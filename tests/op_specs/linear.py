"""Products of matrices, and what `linalg` has."""

from __future__ import annotations

from tests.op_specs.engine import op
from tests.support.generate import call


@op("matmul linalg.matmul")
def _(g):
    a, b = g.pick(
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 2, 3), (3, 2)),
        ((2, 1, 2, 3), (3, 3, 2)),
        ((2, 0), (0, 3)),
        ((2, 2, 3), (3,)),
    )
    kinds = g.pick("float32", "float64", "int64", "complex64", "bfloat16")
    return call(g.tensor(a, kinds), g.tensor(b, kinds))


def _fixed(names: str, *shapes, kinds: str = "fi", **options):
    @op(names, **options)
    def make(g):
        chosen = g.pick(*shapes)
        dtype = g.dtype(kinds)
        return call(*[g.tensor(s, dtype) for s in chosen])


_fixed("mm", ((2, 3), (3, 4)), ((2, 0), (0, 3)), ((1, 3), (3, 1)), kinds="fic")
_fixed("bmm", ((2, 2, 3), (2, 3, 4)), ((0, 2, 3), (0, 3, 1)))
_fixed("mv", ((2, 3), (3,)))
_fixed("dot", ((3,), (3,)), ((0,), (0,)), kinds="fic")
_fixed("vdot", ((3,), (3,)), kinds="fic")
_fixed("inner", ((3,), (3,)), ((2, 3), (4, 3)))
_fixed("outer ger", ((3,), (2,)), ((0,), (2,)))
_fixed("kron", ((2, 2), (2, 3)), ((3,), (2,)), ((2, 1, 2), (2, 2)))
_fixed("cross", ((2, 3), (2, 3)), ((3,), (3,)))
_fixed(
    "nn.functional.linear",
    ((2, 3), (4, 3)),
    ((2, 3), (4, 3), (4,)),
    ((3,), (4, 3)),
    ((2, 2, 3), (4, 3), (4,)),
    kinds="f",
    method=False,
)
_fixed(
    "nn.functional.bilinear", ((2, 3), (2, 4), (5, 3, 4)), ((2, 3), (2, 4), (5, 3, 4), (5,)), kinds="f", method=False
)


def _plus(name: str, *shapes):
    @op(name)
    def make(g):
        chosen = g.pick(*shapes)
        dtype = g.dtype("fi")
        scales = (2, -1) if dtype[0] == "i" else (0.5, 2)
        return call(
            *[g.tensor(s, dtype) for s in chosen],
            **({"alpha": scales[0]} if g.flag() else {}),
            **({"beta": scales[1]} if g.flag() else {}),
        )


_plus("addmm", ((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4)), ((1, 1), (2, 3), (3, 4)))
_plus("baddbmm", ((2, 2, 4), (2, 2, 3), (2, 3, 4)), ((4,), (2, 2, 3), (2, 3, 4)))
_plus("addbmm", ((2, 4), (2, 2, 3), (2, 3, 4)))
_plus("addmv", ((2,), (2, 3), (3,)))
_plus("addr", ((2, 3), (2,), (3,)), ((3,), (2,), (3,)))


@op("tensordot")
def _(g):
    a, b, dims = g.pick(
        ((2, 3), (3, 4), 1), ((2, 3, 4), (3, 4, 2), 2), ((2, 3), (3, 2), ([0, 1], [1, 0])), ((2,), (3,), 0)
    )
    dtype = g.dtype()
    return call(g.tensor(a, dtype), g.tensor(b, dtype), dims=dims)


@op("einsum")
def _(g):
    equation, *shapes = g.pick(
        ("ij,jk->ik", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ii->i", (3, 3)), ("ij->", (2, 3)),
        ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("i,j->ij", (2,), (3,)), ("...ij,...j->...i", (2, 2, 3), (2, 3)),
        ("ij,kj", (2, 3), (2, 3)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 2)),
    )  # fmt: skip
    dtype = g.dtype()
    return call(equation, *[g.tensor(s, dtype) for s in shapes])


@op("linalg.norm")
def _(g):
    x = g.tensor(g.pick((3,), (2, 3), (2, 3, 2)), "f", low=0.5, high=3.0)
    if x.ndim == 2 and g.flag():
        return call(x, g.pick("fro", 1, -1, float("inf"), -float("inf")), **g.maybe(keepdim=True))
    return call(x, **({"dim": g.dim(x), "ord": g.pick(2, 1, 3.0, float("inf"), 0)} if g.flag() else {}))


@op("linalg.vector_norm")
def _(g):
    x = g.tensor(g.pick((3,), (2, 3), (2, 3, 2)), "f")
    dim = g.dims(x)
    return call(
        x,
        g.pick(2, 1, 3.0, float("inf"), -float("inf"), 0),
        **({} if dim is None else {"dim": dim, "keepdim": g.flag()}),
    )


def _grouped_matmul(torch):
    def run(x, w, sizes):
        rows = []
        for one, count in zip(x.reshape(-1, *x.shape[-2:]), sizes.reshape(-1, sizes.shape[-1]).tolist(), strict=True):
            parts = one.split([*count, len(one) - sum(count)])
            products = [part @ matrix for part, matrix in zip(parts, w)]
            rows.append(torch.cat([*products, w.new_zeros(len(parts[-1]), w.shape[-1])]))
        return torch.stack(rows).reshape(*x.shape[:-1], w.shape[-1])

    return run


@op("nn.functional.grouped_matmul", reference=_grouped_matmul)
def _(g):
    lead = g.pick((), (2,))
    x = g.tensor((*lead, 6, 2), "f")
    return call(x, g.tensor((3, 2, 4), x.dtype), g.index((*lead, 3), 3))
