"""The examples of PyTorch's documentation give the same here: every name that has some, under the alias."""

import sys

import pytest
import torch
from torch.utils import _device

from sbpjax import mock_torch
from tests.documentation.examples import difference, examples, outcomes

# Names whose examples differ, and why.
EXCEPTIONS = {
    "torch.Event torch.is_storage torch.from_file torch.fake_quantize_per_channel_affine "
    "torch.fake_quantize_per_tensor_affine torch.nn.LinearCrossEntropyLoss torch.linalg.householder_product "
    "torch.quantize_per_channel torch.quantize_per_tensor torch.quantize_per_tensor_dynamic torch.func.rearrange "
    "torch.func.functionalize torch.Tensor.grad_dtype torch.autograd.enforce_grad_layout_policy "
    "torch.autograd.graph.allow_mutation_on_saved_tensors "
    "torch.utils.checkpoint.create_selective_checkpoint_contexts": "they use names that sbpjax does not have",
    "torch.Tensor.col_indices torch.Tensor.crow_indices torch.Tensor.to_dense torch.Tensor.to_sparse_bsc "
    "torch.Tensor.to_sparse_bsr torch.Tensor.to_sparse_coo torch.Tensor.to_sparse_csc "
    "torch.Tensor.dim_order": "XLA orders memory itself, and strides are those of row-major order",
    "torch.from_dlpack": "arrays of XLA do not change: what is written to the source is not seen",
    "torch.resolve_neg": "a negation is computed at once, so nothing is lazily negative",
    "torch.set_flush_denormal": "XLA decides on denormal numbers",
    "torch.utils.data.IterableDataset": "its classes are in no module, and workers are new processes",
    "torch.typename": "classes say the module that they are in",
}
EXCEPTED = {name for names in EXCEPTIONS for name in names.split()}


def differences(name):
    want, other = outcomes(torch, name, 0), outcomes(torch, name, 1)
    with mock_torch.enable():
        import torch as ours

        got = outcomes(ours, name, 0)
    found = []
    for i, (g, w, o) in enumerate(zip(got, want, other, strict=True)):
        if w[0] == "error":  # it cannot be run without what the text around it says
            continue
        if g[0] == "error":
            found.append(f"statement {i}: {g[1]}")
            continue
        chance = o[0] == "error" or difference(o[1], w[1], False) is not None
        apart = difference(g[1], w[1], chance)
        found += [] if apart is None else [f"statement {i}: {apart}"]
    return found


@pytest.mark.parametrize("name", sorted(examples().keys() - EXCEPTED))
def test_an_example(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    assert differences(name) == []
    assert sys.modules["torch"] is torch


@pytest.mark.parametrize("name", sorted(EXCEPTED & examples().keys()))
def test_an_exception_is_one(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert differences(name)


def test_exceptions_are_of_examples():
    assert examples().keys() >= EXCEPTED


def test_an_example_leaves_the_functions_of_a_default_device_as_they_are():
    _device._device_constructors.cache_clear()  # as in a process where nothing asked for them yet
    outcomes(torch, "torch.set_default_device", 0)
    with torch.device("meta"):
        assert all(make(2).is_meta for make in (torch.randn, torch.rand, torch.empty, torch.zeros))
