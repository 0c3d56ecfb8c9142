"""Keywords that PyTorch takes and that mean nothing here, and what is said of one that nobody knows."""

import numpy as np
import pytest
import torch as real

import sbpjax
from sbpjax import mock_torch

_LYING = ("layout=torch.strided", "pin_memory=False")
_NEW = """torch.zeros(2,{}) torch.ones(2,{}) torch.empty(2,{}) torch.full((2,),1.5,{}) torch.arange(3,{})
 torch.linspace(0,1,3,{}) torch.logspace(0,1,3,{}) torch.eye(2,{}) torch.rand(2,{}) torch.randn(2,{})
 torch.randint(3,(2,),{}) torch.randperm(3,{}) torch.normal(0.,1.,(2,),{}) torch.zeros_like(x,{}) torch.ones_like(x,{})
 torch.empty_like(x,{}) torch.full_like(x,2.,{}) torch.rand_like(x,{}) torch.randn_like(x,{})
 torch.randint_like(x,3,{}) x.new_zeros(2,{}) x.new_ones(2,{}) x.new_empty(2,{}) x.new_full((2,),1.5,{})""".split()
_LIKE = """torch.zeros_like(x,{}) torch.full_like(x,2.,{}) torch.rand_like(x,{}) torch.randn_like(x,{})
 torch.randint_like(x,3,{}) x.cpu({}) x.float({}) x.double({}) x.half({}) x.bfloat16({}) x.int({}) x.long({})
 x.short({}) x.char({}) x.byte({}) x.bool({})""".split()
_RANGES = """torch.arange(end=3) torch.arange(start=1,end=3) torch.arange(end=7,start=1,step=2)
 torch.randint(high=3,size=(2,)) torch.randint(3,size=(2,)) torch.randint(low=1,high=3,size=(2,))""".split()
CODES = [code.format(word) for code in _NEW for word in _LYING]
CODES += [code.format("memory_format=torch.preserve_format") for code in _LIKE] + _RANGES
_FREE = ("torch.rand", "normal", "empty")  # of no fixed values


def value(library, code):
    return eval(code, {"torch": library, "x": library.ones(2)})


@pytest.mark.parametrize("code", CODES)
def test_taken_as_by_pytorch(code):
    theirs = value(real, code)
    with mock_torch.enable():
        import torch

        ours = value(torch, code)
    assert tuple(ours.shape) == tuple(theirs.shape) and ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    if not any(name in code for name in _FREE):
        np.testing.assert_allclose(ours.float().numpy(), theirs.float().numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "code", "zeros(2,layout=None,foo=1) arange(3,foo=1) full((2,),1.0,foo=1) rand(2,foo=1)".split()
)
def test_an_unknown_keyword_is_to_be_left_out(code):
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'foo'\n +fix: +leave out foo: "):
        eval(code, {name: getattr(sbpjax, name) for name in ("zeros", "arange", "full", "rand")})  # loaded on first use


@pytest.mark.parametrize("name", ["cpu", "cuda", "float", "new_zeros"])
def test_a_method_says_its_own_name(name):
    with pytest.raises(TypeError, match=rf"^Tensor\.{name}\(|^{name}\("):
        getattr(sbpjax.ones(2), name)(foo=1)


def test_a_range_without_an_end():
    with pytest.raises(TypeError, match=r"fix: +arange\(end=3\)"):
        sbpjax.arange()
    with pytest.raises(TypeError, match="takes"):
        sbpjax.randint(size=(2,))
