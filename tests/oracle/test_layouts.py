"""Which rank holds what: `to_global` of global and of local tensors against the recorded locals, all of them.

A partial sum may lie in any way as long as the sum is right. Where OneFlow crashed (a split dim shorter than the number
of ranks), the balanced rule holds here: the last ranks hold nothing.
"""

import math

import numpy as np
import pytest

from sbpjax import errors
from sbpjax._core.compiler import conversions
from sbpjax.sbp import placement
from sbpjax.sbp.layout import layout_of
from tests.oracle.notation import block_of, codes_of, load, sbp_of
from tests.support.assemble import from_local_shards

GROUPS = load("to_global")["groups"]


def _place(ranks):
    return placement("cpu", ranks)


def _source(group: dict, sbp: str):
    """Return the source tensor: a P of n terms has constants 100, 200, … and in the last term the rest."""
    where, codes = _place(group["src"]), codes_of(sbp)
    whole = np.arange(math.prod(group["shape"]), dtype=np.float32).reshape(group["shape"])
    layout = layout_of(where, codes, whole.shape, whole.dtype)
    terms = math.prod(where.hierarchy[a] for a in layout.partial_axes)
    blocks = {}
    for rank, index, part in zip(where.ranks.flat, np.ndindex(*where.hierarchy), layout.parts(), strict=True):
        block = whole[tuple(slice(o, o + c) for o, c in part)]
        k = 0
        for a in layout.partial_axes:
            k = k * where.hierarchy[a] + index[a]
        if k < terms - 1:
            block = np.full_like(block, 100 * (k + 1))
        else:
            block = block - np.float32(sum(100 * (i + 1) for i in range(terms - 1)))
        blocks[int(rank)] = block
    array, made = from_local_shards(blocks, where, sbp_of(sbp))
    assert made is layout
    return array, layout, whole


def _cases():
    return [
        pytest.param(g, case, want, id=f"{g['shape']}-{g['src']}-{g['dst']}-{case}".replace(" ", ""))
        for g in GROUPS
        for case, want in g["cases"].items()
    ]


def _balanced(whole, where, codes):
    layout = layout_of(where, codes, whole.shape, whole.dtype)
    parts = zip(where.ranks.flat, layout.parts(), strict=True)
    return {int(r): whole[tuple(slice(o, o + c) for o, c in part)] for r, part in parts}


@pytest.mark.parametrize("group, case, want", _cases())
def test_global_to_global(group, case, want):
    before, after = case.split(">")
    array, layout, whole = _source(group, before)
    where, codes = _place(group["dst"]), codes_of(after)
    moved, reached = conversions.convert(array, layout, where, sbp_of(after))
    assert reached.codes == codes and reached.placement == where and reached.shape == whole.shape
    shards = conversions.local_shards(moved, reached)
    assert set(shards) == {int(r) for r in where.ranks.flat}
    np.testing.assert_array_equal(np.asarray(conversions.to_logical(moved, reached)), whole)
    if reached.partial_axes:
        return
    if isinstance(want, str):
        assert want.startswith("!") and "split_dim_smaller" in want
        expected = _balanced(whole, where, codes)
    else:  # OneFlow sorts the ranks, here their order is meaningful: the k-th of the placement holds its k-th part
        expected = {int(r): block_of(want[s]) for r, s in zip(where.ranks.flat, sorted(shards), strict=True)}
        assert all(w == "0x0:" for r, w in enumerate(want) if r not in shards)
    for rank, block in expected.items():
        np.testing.assert_array_equal(shards[rank], block)


CONTRIBUTED = load("local_to_global")["cases"]
ACCEPTED_HERE = "split_dim_smaller_than_ranks_or_dim_check"  # an empty part is legal here


def _contribution(case: dict) -> dict:
    dtypes = case.get("dtypes", "float32")
    dtypes = [dtypes] * 4 if isinstance(dtypes, str) else dtypes
    return {
        r: (np.arange(math.prod(shape)) + 100 * r).reshape(shape).astype(dtype)
        for r, (shape, dtype) in enumerate(zip(case["local_shapes"], dtypes, strict=True))
    }


@pytest.mark.parametrize("case", CONTRIBUTED, ids=[f"{c['local_shapes']}-{c['ranks']}-{c['sbp']}" for c in CONTRIBUTED])
def test_local_to_global(case):
    where = _place(case["ranks"])
    blocks = _contribution(case)
    if "error" in case and not any(ACCEPTED_HERE in e for e in case["error"].values()):
        with pytest.raises(errors.SbpjaxError) as raised:
            from_local_shards(blocks, where, sbp_of(case["sbp"]))
        assert "\n  fix:  " in str(raised.value)
        return
    array, layout = from_local_shards(blocks, where, sbp_of(case["sbp"]))
    shards = conversions.local_shards(array, layout)
    if "error" in case:
        for rank, block in blocks.items():
            np.testing.assert_array_equal(shards[rank], block)
        return
    assert layout.shape == tuple(case["global_shape"])
    for rank, want in enumerate(case["locals"]):
        if rank not in shards:
            assert want == "0x0:"
            continue
        np.testing.assert_array_equal(shards[rank], block_of(want, blocks[rank].dtype))
