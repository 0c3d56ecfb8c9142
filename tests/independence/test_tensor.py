"""Programs over tensors, as a user writes them: indexing, writes through views, in-place ops, sorting, gradients.

Each program runs on local tensors and on global ones in random layouts; its results, and what it wrote to, are equal.
"""

import itertools
import zlib

import numpy as np
import pytest

import sbpjax as flow
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax.sbp import algebra
from tests.independence.layouts import lay_out, random_codes

RTOL = 2e-5
_X = np.random.default_rng(0).normal(size=(7, 6)).astype(np.float32)
_Y = np.random.default_rng(1).normal(size=(7, 6)).astype(np.float32)
_I = np.random.default_rng(2).integers(0, 6, size=(7, 6)).astype(np.int64)
_V = np.array([3, 0, 6, 3], np.int64)


def _write(statement: str):
    """Return a program that executes a statement on copies and returns what it wrote to."""
    code = compile(statement, statement, "exec")

    def program(x, y, i, v):
        names = {"x": x.clone(), "y": y, "i": i, "v": v, "flow": flow}
        exec(code, names)
        return names["x"]

    return program


READS = """x[2]
x[-1,3]
x[1:6:2]
x[:,::2]
x[...,1]
x[None]
x[:,None,2:5]
x[[0,3,3]]
x[v]
x[v,1:4]
x[:,v[:2]]
x[v[:3],v[1:]%6]
x[i>2]
x.t()[2:]
x.flip([0])
x.roll(2,1)
x.gather(1,i)
flow.where(i>2,x,y)
x.masked_fill(i>2,1.5)
flow.nonzero(i>4)
flow.masked_select(x,i>2)
x.sort(dim=0)[0]
x.argsort(dim=1)
x.topk(3,dim=1)[1]
x.cumsum(0)
x.cumprod(1)
x.unfold(0,3,2)
flow.cat([x,y[:2]],dim=0)
flow.stack([x,y],dim=1)
x.split(3,dim=0)[2]
x.chunk(4,dim=1)[2]
x.reshape(6,7)
x.reshape(-1)[5:9]
x.permute(1,0).reshape(3,14)
x.expand(2,7,6)
x.repeat(2,3)
flow.einsum('ij,kj->ik',x,y)
x@y.t()
x.softmax(0)
x.std(1)
x.median(1)[0]
flow.nn.functional.pad(x,(1,2,0,3))
flow.diagonal(x)
x.tril(1)
x.unique()
flow.bincount(i.reshape(-1))
x.argmax()
x.max(0)[1]
flow.nn.functional.one_hot(i,6)
flow.nn.functional.embedding(i,x)
x.view(42).view(2,21)
x.norm()
x.logsumexp(1)
(x>0).any(0)
x.to(flow.int64)//2
x.to(flow.float16)+1
(x>y)&(i>1)
flow.nn.functional.layer_norm(x,(6,))
flow.nn.functional.gelu(x)
x.index_select(1,v[:2])
flow.meshgrid(x[0],y[1])[1]
flow.nn.functional.cross_entropy(x,v[[0,1,0,1,0,1,1]]%6)
x.mean()
x.var()
x.prod(1)
x.clamp(-0.5,0.5)""".split("\n")
WRITES = """x[2]=5.0
x[1:4]=y[2:5]
x[:,2]=y[:,3]
x[v]=1.5
x[i>2]=0.25
x[v,0]=y[v,1]
x[...,::3]=y[...,1::3]
x.t()[1]=2.0
x[1].add_(y[0])
x.view(6,7)[2].mul_(3.0)
x.add_(y)
x.mul_(y).sub_(1)
x.copy_(y)
x.fill_(2.5)
x.masked_fill_(i>3,-1.0)
x.clamp_(min=0)
x.scatter_(1,i,y)
x.scatter_add_(0,i,y)
x.index_add_(0,v,y[:4])
x.zero_()
x.unsqueeze(1)[:,0,2:4].add_(1)
x.narrow(0,2,3).copy_(y[:3])
flow.nn.functional.relu(x,inplace=True)
x.squeeze().exp_()
x+=y
x[2:5]*=2""".split("\n")


def _tensors(text: str, mesh: str, partial: bool):
    rng = np.random.default_rng([zlib.crc32(text.encode()), zlib.crc32(mesh.encode())])
    spread, alone = [], []
    for position, value in enumerate((_X, _Y, _I, _V)):
        codes = random_codes(rng, value.ndim, 1 if mesh == "1d" else 2)
        if position == 0 and not partial:
            codes = tuple(algebra.B if c == algebra.P else c for c in codes)
        array, layout, logical = lay_out(value, mesh, codes, rng)
        spread.append(wrap_any(array, layout))
        alone.append(flow.tensor(logical))
    return spread, alone


def _same(got, want, what: str) -> None:
    got, want = got.numpy(), want.numpy()
    assert got.dtype == want.dtype and got.shape == want.shape, what
    if want.dtype.kind == "f":
        rtol = 2e-3 if want.dtype == np.float16 else RTOL
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * float(np.abs(want).max(initial=0.0)), err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


@pytest.mark.parametrize("text, mesh", list(zip(READS, itertools.cycle(["1d", "2d", "2d"]))))
def test_read(text, mesh):
    spread, alone = _tensors(text, mesh, partial=True)
    for x in (spread[0], alone[0]):
        x.requires_grad_()
    program = eval(f"lambda x, y, i, v: {text}", {"flow": flow})
    got, want = program(*spread), program(*alone)
    what = f"{text} of {[t.sbp for t in spread]}"
    _same(got, want, what)
    assert got.requires_grad == want.requires_grad
    if want.requires_grad:
        for out in (got, want):
            (out.float() ** 3).sum().backward()  # squares would have a gradient of zero behind layer_norm
        _same(spread[0].grad, alone[0].grad, f"gradient of {what}")
        assert spread[0].grad.sbp == spread[0].sbp


@pytest.mark.parametrize("text, mesh", list(zip(WRITES, itertools.cycle(["2d", "1d"]))))
def test_write(text, mesh):
    spread, alone = _tensors(text, mesh, partial=False)
    program = _write(text)
    got, want = program(*spread), program(*alone)
    _same(got, want, f"{text} of {[t.sbp for t in spread]}")
    assert got.sbp == spread[0].sbp, "a write keeps the layout of what is written to"
