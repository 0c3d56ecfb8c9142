"""Printed forms: PyTorch's for local tensors, OneFlow's lines for global ones."""

import numpy as np
import pytest
import torch

import sbpjax
from sbpjax import sbp

rng = np.random.default_rng(0)
ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3).astype("f"),
    "mixed sizes": np.array([1.5, -2, 1e-6], "f"),
    "large": np.array([1e10, 1.0], "f"),
    "ints": np.arange(3),
    "scalar": np.array(3.5, "f"),
    "summary": np.ones((40, 40), "f"),
    "3-d": rng.normal(size=(3, 4, 5)).astype("f"),
    "bools": np.array([True, False]),
    "not finite": np.array([np.nan, np.inf, 1], "f"),
    "long vector": np.arange(2000),
    "empty": np.zeros((0, 3), "f"),
    "empty vector": np.zeros(0, "f"),
    "wrapped line": np.arange(30.0, dtype="f"),
    "long random": rng.normal(size=2000).astype("f"),
    "small": np.array([1e-3, 1, 2], "f"),
    "wide ints": np.arange(40).reshape(2, 20) * 1000,
    "complex": np.array([1 + 2j, 3 - 1.5j], "complex64"),
    "range": np.array([0.1, 100000.0], "f"),
    "whole and large": np.array([1.0, 100000000.0, 123456789.0], "f"),
    "double": rng.normal(size=(2, 3)),
    "tiny": np.full(3, 1e-5, "f"),
    "3-d summary": rng.normal(size=(12, 2, 1200)).astype("f"),
    "negative": -np.arange(12.0, dtype="f").reshape(3, 4) / 3,
    "int8": np.array([1, -2], "int8"),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_as_pytorch(array):
    assert repr(sbpjax.tensor(array)) == repr(torch.tensor(array)).replace("torch.", "sbpjax.")


def test_options():
    values = rng.normal(size=(3, 4)).astype("f") * 100
    try:
        for options in (
            {"precision": 2},
            {"sci_mode": True},
            {"linewidth": 30},
            {"threshold": 5, "edgeitems": 1},
            {"profile": "short"},
        ):
            sbpjax.set_printoptions(profile="default")
            torch.set_printoptions(profile="default")
            sbpjax.set_printoptions(**options)
            torch.set_printoptions(**options)
            assert repr(sbpjax.tensor(values)) == repr(torch.tensor(values)), options
    finally:
        sbpjax.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")


def test_bfloat16_and_half():
    assert repr(sbpjax.tensor([1.5], dtype=sbpjax.bfloat16)) == "tensor([1.5000], dtype=sbpjax.bfloat16)"
    assert repr(sbpjax.tensor([1.5]).half()) == "tensor([1.5000], dtype=sbpjax.float16)"


def test_global():
    p = sbpjax.placement("cpu", [0, 1, 2, 3])
    x = sbpjax.tensor([[0.0, 1.0], [2.0, 3.0]], placement=p, sbp=sbp.partial_sum)
    place = 'placement=sbpjax.placement(type="cpu", ranks=[0, 1, 2, 3])'
    assert repr(x) == (
        f"tensor([[0., 1.],\n        [2., 3.]], {place},\n       sbp=(sbpjax.sbp.partial_sum,), dtype=sbpjax.float32)"
    )
    x.requires_grad_()
    assert repr(x).endswith("dtype=sbpjax.float32,\n       grad_fn=<accumulate_grad>)")
    assert repr(x * 2).endswith("dtype=sbpjax.float32,\n       grad_fn=<scalar_mul_backward>)")
    assert repr(sbpjax.tensor([1, 2, 3], placement=p, sbp=sbp.broadcast)) == (
        f"tensor([1, 2, 3], {place},\n       sbp=(sbpjax.sbp.broadcast,), dtype=sbpjax.int64)"
    )


def test_local_grad_suffixes():
    x = sbpjax.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x * x) == "tensor([1., 1.], grad_fn=<mul_backward>)"


def test_large_global_reads_only_corners():
    p = sbpjax.placement("cpu", [0, 1, 2, 3])
    x = sbpjax.arange(4_000_000, placement=p, sbp=sbp.split(0)).reshape(2000, 2000)
    text = repr(x)
    assert "3999999" in text and "..." in text and len(text) < 1200


def test_format():
    assert f"{sbpjax.tensor(2.5):.2f}" == "2.50"
    assert f"{sbpjax.tensor([1, 2])}" == "tensor([1, 2])"


@pytest.mark.parametrize("name", ["float32", "int64", "bool", "bfloat16"])
def test_dtypes(name):
    dtype = getattr(sbpjax, name)
    assert repr(dtype) == f"sbpjax.{name}"
    assert dtype == getattr(sbpjax, name) and dtype == dtype.np and hash(dtype) == hash(dtype.np)
    assert {dtype: 1}[dtype.np] == 1
    assert dtype != "nothing" and dtype is not None and dtype != sbpjax.float16
    import copy
    import pickle

    assert copy.deepcopy(dtype) is dtype and pickle.loads(pickle.dumps(dtype)) is dtype


def test_size():
    size = sbpjax.ones(2, 3).shape
    assert repr(size) == "sbpjax.Size([2, 3])" and size == (2, 3) and size.numel() == 6
    assert repr(size[1:]) == "sbpjax.Size([3])" and repr(size + (4,)) == "sbpjax.Size([2, 3, 4])"
