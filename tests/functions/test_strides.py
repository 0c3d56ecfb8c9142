"""Views by strides, storages, sizes in place: the same script under sbpjax and PyTorch."""

import ctypes

import numpy as np
import pytest
import torch

import sbpjax
from sbpjax.errors import NotInJaxError, OpError, OpTypeError

BOTH = pytest.mark.parametrize("m", [sbpjax, torch], ids=["sbpjax", "torch"])


def whole(m):
    return m.arange(12, dtype=m.float32).reshape(3, 4)


@BOTH
def test_as_strided_shows_the_storage_and_writes_through(m):
    x = whole(m)
    assert x[1].as_strided((2, 2), (4, 2)).tolist() == [[4, 6], [8, 10]]  # the offset of the view is kept
    assert m.as_strided(x.t(), (3,), (1,), 5).tolist() == [5, 6, 7]
    v = x[1:].as_strided((2,), (1,), 0)
    assert (v.stride(), v.storage_offset()) == ((1,), 0)
    v.mul_(-1).sub_(1)
    assert x[0].tolist() == [-1, -2, 2, 3]
    x.as_strided((3,), (5,)).fill_(7)
    assert x.diagonal().tolist() == [7, 7, 7]
    y = whole(m)
    y.as_strided_((2, 3), (1, 2), 1)
    assert y.tolist() == [[1, 3, 5], [2, 4, 6]]
    with pytest.raises(RuntimeError):
        x.as_strided((4,), (4,))
    with pytest.raises(RuntimeError):
        x.as_strided((4,), (4, 1))


@BOTH
def test_gradients_of_overlapping_windows(m):
    x = whole(m).requires_grad_()
    windows = (x * 2).as_strided((5, 3), (2, 1))
    (windows * m.arange(3.0)).sum().backward()
    want = [[0, 2, 4, 2], [4, 2, 4, 2], [4, 2, 4, 0]]
    assert x.grad.tolist() == want
    assert m.as_strided_scatter(whole(m), m.zeros(3), (3,), (5,)).diagonal().tolist() == [0, 0, 0]
    assert m.as_strided_copy(whole(m), (2,), (3,), 1).tolist() == [1, 4]


@BOTH
def test_storages(m):
    x = whole(m)
    assert x[1].data_ptr() - x.data_ptr() == 16 and x[1].t().data_ptr() == x[1].data_ptr()
    assert x.untyped_storage().nbytes() == x[2].untyped_storage().size() == 48
    assert x.untyped_storage().data_ptr() == x.data_ptr() and m.zeros(0).data_ptr() == 0
    assert x.view(4, 3).is_set_to(x.reshape(4, 3)) and not x.is_set_to(x.clone())
    y = m.zeros(2)
    y.set_(x)
    y[0, 0] = 5
    assert x[0, 0] == 5 and y.shape == (3, 4)
    assert x.new(2, 3).shape == (2, 3) and x.new([1, 2]).tolist() == [1, 2] and x.new().shape == (0,)
    assert x.share_memory_() is x


@BOTH
def test_sizes_in_place(m):
    x = whole(m)
    x.resize_(2, 3)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    x.resize_(7)
    assert x[:6].tolist() == [0, 1, 2, 3, 4, 5]
    x.resize_as_(m.zeros(1, 2))
    assert x.tolist() == [[0, 1]]
    with pytest.raises(RuntimeError):
        m.zeros(2, requires_grad=True).resize_(3)


@BOTH
def test_empty_with_strides(m):
    x = m.empty_strided((2, 3), (1, 2))
    assert x.shape == (2, 3) and x.stride() == (1, 2) and not x.is_contiguous()
    assert m.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)
    assert whole(m).new_empty_strided((2, 2), (2, 1)).dtype == m.float32


def test_what_only_oneflow_has():
    x = whole(sbpjax)
    y = x.t()
    assert y.contiguous_() is y and y.is_contiguous() and y.tolist() == whole(torch).t().tolist()
    assert x.offload() is x and x.is_offloaded() and not x.load().is_offloaded()
    assert x.check_meta_consistency() is None and x.global_id() == x.global_id()
    with pytest.raises(OpTypeError, match="delete"):
        del x[0]
    with pytest.raises(OpError, match="does not support|only supported|integers"):
        sbpjax.view_as_complex(sbpjax.ones(2, dtype=sbpjax.int64))
    part = sbpjax.slice(x, [[None, None, None], [0, 4, 2]])
    assert part.tolist() == x.numpy()[:, ::2].tolist()
    sbpjax.slice_update(x, sbpjax.zeros(3, 2), [[None, None, None], [0, 4, 2]])
    assert x[:, 0].sum() == 0 == x[:, 2].sum()
    assert sbpjax.square_relu(sbpjax.tensor([-1.0, 3.0])).tolist() == [0, 9]
    assert sbpjax.dtypes()[0] in (sbpjax.float16, sbpjax.bool)
    assert sbpjax.convert_oneflow_dtype_to_numpy_dtype(sbpjax.int8) == np.int8
    for call in (sbpjax.tensor_to_tensor_buffer, sbpjax.tensor_buffer_to_tensor):
        with pytest.raises(NotInJaxError, match="list of tensors"):
            call(x, 1)
    with pytest.raises(NotInJaxError, match="element type"):
        sbpjax.zeros(2, dtype=sbpjax.tensor_buffer)


def test_sampled_classes_hold_those_that_occur():
    weight, label = sbpjax.arange(20).reshape(10, 2), sbpjax.tensor([7, 2, 7])
    mapped, classes, rows = sbpjax.distributed_partial_fc_sample(weight, label, 5)
    found = classes.numpy()
    assert len(found) == 5 and (np.diff(found) > 0).all() and found[mapped.numpy()].tolist() == [7, 2, 7]
    assert rows.tolist() == weight.numpy()[found].tolist()
    with pytest.raises(OpError, match="num_sample"):
        sbpjax.distributed_partial_fc_sample(weight, label, 1)


@BOTH
def test_other_libraries_read_the_memory(m):
    x = m.arange(4.0)
    assert np.from_dlpack(x).tolist() == [0, 1, 2, 3] and m.from_dlpack(np.arange(3.0)).dtype == m.float64
    assert m.from_dlpack(torch.arange(3)).tolist() == [0, 1, 2] and torch.from_dlpack(x).tolist() == [0, 1, 2, 3]
    assert (2 << m.tensor([1, 2])).tolist() == [4, 8] and list(map(int, reversed(m.tensor([1, 2])))) == [2, 1]
    y = m.tensor([1, 2])
    y <<= 2
    assert y.tolist() == [4, 8] and (64 >> y).tolist() == [4, 0] and x.is_cpu and not x.is_sparse


@BOTH
def test_default_devices(m):
    with m.device("meta"):
        assert (
            m.zeros(2).is_meta
            and m.tensor([1.0]).is_meta
            and m.zeros_like(m.zeros(1, device="cpu")).device.type == "cpu"
        )
    assert not m.zeros(2).is_meta
    m.set_default_device("meta")
    assert m.randn(2).is_meta and m.get_default_device().type == "meta"
    m.set_default_device(None)
    assert m.get_default_device().type == "cpu" and m.ones(2).sum() == 2


def test_element_types_and_sizes():
    assert sbpjax.dtype.get(2) is sbpjax.float32 and sbpjax.float64.bytes == 8
    assert sbpjax.float64.to_complex() is sbpjax.complex128 and sbpjax.complex64.to_real() is sbpjax.float32
    with pytest.raises(OpTypeError, match="known are"):
        sbpjax.dtype.get(99)
    assert repr(sbpjax.Size([1, 2]) * 2) == "sbpjax.Size([1, 2, 1, 2])" and (3,) + sbpjax.Size([2]) == (3, 2)


def seen_by_c(x):
    """Return what lies at a tensor's address, as a library in C reads it."""
    return np.ctypeslib.as_array(ctypes.cast(x.data_ptr(), ctypes.POINTER(ctypes.c_float)), (x.numel(),)).tolist()


@pytest.mark.parametrize("sbp", ["S0", "S1", "B", "P"])
def test_the_address_of_a_global_tensor_shows_all_of_it(sbp):
    kinds = {"S0": sbpjax.sbp.split(0), "S1": sbpjax.sbp.split(1), "B": sbpjax.sbp.broadcast}
    place = sbpjax.placement("cpu", [0, 1, 2, 3])
    x = sbpjax.arange(12.0).view(4, 3).to_global(place, kinds.get(sbp, sbpjax.sbp.broadcast))
    if sbp == "P":
        x = x.to_global(sbp=sbpjax.sbp.partial_sum)
    alias = x.detach()
    assert seen_by_c(x) == list(range(12)) and seen_by_c(x[1:]) == list(range(3, 12))
    assert x.data_ptr() == alias.data_ptr() and x[-1].data_ptr() - x.data_ptr() == 36
    before = x.data_ptr()
    x.mul_(2)
    assert seen_by_c(x) == list(range(0, 24, 2)) and (sbp == "B" or x.data_ptr() != before)
