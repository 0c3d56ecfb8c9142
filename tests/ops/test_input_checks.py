"""Dtypes that PyTorch has no kernel for are refused, and the others give PyTorch's values."""

import warnings

import numpy as np
import pytest
import torch

import sbpjax as flow

CASES = """
F.kl_div(f,x)
F.hinge_embedding_loss(x,x)
F.multi_margin_loss(x[0,0,:1],c)
F.multi_margin_loss(f[0,0,:1],c,weight=x[0,0,0])
F.multilabel_margin_loss(x[0,0],T.tensor([0,-1]))
F.cross_entropy(f[0,0,:1],c,x[0,0,0])
F.binary_cross_entropy_with_logits(f,x)
F.binary_cross_entropy_with_logits(f,f,x)
F.softshrink(x)
F.hardshrink(x)
F.avg_pool1d(x[0],2)
F.avg_pool2d(x,2)
F.avg_pool3d(x[None],(1,2,2))
F.max_pool1d(x[0],2)
F.max_pool2d(x,2)
F.adaptive_avg_pool1d(x[0],1)
F.adaptive_avg_pool2d(x,1)
F.adaptive_avg_pool3d(x[None],1)
F.adaptive_max_pool1d(x[0],1)
F.adaptive_max_pool2d(x,1)
F.adaptive_max_pool3d(x[None],1)
F.max_unpool1d(x[0],T.zeros(2,2,dtype=T.int64),2)
F.max_unpool3d(x[None],T.zeros(1,1,1,2,2,dtype=T.int64),2)
F.unfold(x,2)
F.fold(x.reshape(1,4,1),(2,2),2)
F.interpolate(x,size=1)
F.interpolate(x[0],size=1,mode='linear')
F.interpolate(x[None],size=1,mode='trilinear')
F.interpolate(x,size=1,mode='bilinear')
F.interpolate(x,size=1,mode='area')
F.grid_sample(x,T.zeros(1,2,2,2).to(x.dtype))
F.embedding_bag(T.tensor([[0,1]]),x[0,0])
T.logcumsumexp(x,0)
T.logaddexp(x,x)
T.logaddexp(x,f)
T.logaddexp2(x,x)
T.igamma(x,x)
T.igammac(x,f)
T.frac(x)
T.gradient(x[0,0,0])
T.geqrf(x[0,0])
T.round(x,decimals=1)
""".strip().splitlines()


def _outcome(package, case, dtype):
    x = package.tensor([[[[1, 2], [3, 1]]]], dtype=getattr(package, dtype))
    names = {"T": package, "F": package.nn.functional, "x": x, "f": x.float(), "c": package.tensor([0])}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = eval(case, names)
    except (RuntimeError, TypeError) as error:
        return error
    return (found[0] if isinstance(found, (tuple, list)) else found).numpy()


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
@pytest.mark.parametrize("case", CASES)
def test_an_integer_dtype_is_refused_where_pytorch_has_no_kernel(case, dtype):
    wanted, got = _outcome(torch, case, dtype), _outcome(flow, case, dtype)
    if isinstance(wanted, Exception):
        assert isinstance(got, Exception), f"{case} gave {got}; PyTorch raises {wanted!r}"
        assert "seen: " in str(got) and "fix:  " in str(got)
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_a_normal_of_an_integer_mean_is_refused():
    with pytest.raises(NotImplementedError, match="normal is not defined for signed whole numbers"):
        flow.normal(flow.tensor([1, 2]), flow.ones(2))
    with pytest.raises(NotImplementedError, match="normal is not defined for unsigned whole numbers"):
        flow.normal(flow.tensor([1, 2], dtype=flow.uint8), 1.0)
    assert flow.normal(flow.tensor([1.0, 2.0]), 0.0).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dims", [1, 2])
def test_power_means_of_bytes_are_refused(dims):
    x = flow.ones(1, 2, 2, dtype=flow.uint8)
    with pytest.raises(NotImplementedError, match=f"lp_pool{dims}d is not defined for unsigned whole numbers"):
        getattr(flow.nn.functional, f"lp_pool{dims}d")(x, 2, 2)
