"""Lazy constants are like the tensor they are laid out like, and filled at their first read."""

import pytest

import sbpjax as flow
from sbpjax._core.tensor.storage.lazy_constant import LazyConstant, constant_of, lazy_full_like
from sbpjax._core.tensor.storage.payload import payload


def places() -> list[dict]:
    return [{}, {"device": "cpu:1"}, {"placement": flow.placement("cpu", range(4)), "sbp": flow.sbp.split(0)}]


@pytest.mark.parametrize("options", places(), ids=["local", "device", "split"])
def test_lazy_constant_is_filled_at_its_first_read(options):
    x = flow.empty(8, 5, **options)
    fills = [lazy_full_like(x, 1.5) for _ in range(3)]
    assert constant_of(fills) == 1.5 and all(fill._array.__class__ is LazyConstant for fill in fills)
    assert constant_of([*fills, lazy_full_like(x, 2.0)]) is None and constant_of([*fills, x]) is None
    first = fills[0]
    assert first.shape == x.shape and first.dtype is x.dtype and first.layout == x.layout and first.is_leaf
    first.add_(1)
    assert first.tolist() == [[2.5] * 5] * 8 and fills[1].tolist() == [[1.5] * 5] * 8
    assert payload(first).sharding == payload(x).sharding
    assert payload(fills[1]).committed == payload(x).committed
    assert constant_of(fills) is None and constant_of(fills[2:]) == 1.5


def test_alias_of_a_lazy_constant_shows_its_writes():
    fill = lazy_full_like(flow.empty(3), 2.0)
    alias = fill.detach()
    alias.add_(1)
    assert fill.tolist() == [3.0] * 3


def test_lazy_constant_is_read_in_a_trace():
    x = flow.zeros(4, placement=flow.placement("cpu", range(4)), sbp=flow.sbp.split(0))
    fill = lazy_full_like(x, 3.0)

    @flow.compile
    def total():
        return (fill * 2).sum()

    assert total().item() == 24.0 and fill.tolist() == [3.0] * 4 and fill.sbp == x.sbp


def test_sums_and_traced_tensors_have_no_lazy_constant():
    summed = flow.zeros(4, placement=flow.placement("cpu", range(4)), sbp=flow.sbp.partial_sum)
    assert lazy_full_like(summed, 1.0) is None
    found = []

    @flow.compile
    def trace(x):
        found.append(lazy_full_like(x, 1.0))
        return x

    trace(flow.zeros(4))
    assert found == [None]
