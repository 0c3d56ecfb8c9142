"""Every row of indexed reads and writes, by brute force, with indices in and out of range."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(3)
_MODES = ("promise_in_bounds", "clip", "fill")
_SCATTERS = ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")


def _x(*shape, dtype=np.float32):
    return _RNG.integers(1, 9, shape).astype(dtype)


def _ids(n, *shape, outside=True, dtype=np.int32):
    """Return indices into a dim of `n`, some of them outside."""
    return _RNG.integers(-3 if outside else 0, n + 3 if outside else n, shape).astype(dtype)


@functools.cache
def _gathers():
    found = []
    for n in (8, 5):
        for mode in _MODES:
            numbers = lax.GatherDimensionNumbers(offset_dims=(2,), collapsed_slice_dims=(0,), start_index_map=(0,))
            take = functools.partial(
                lax.gather, dimension_numbers=numbers, slice_sizes=(1, 3), mode=lax.GatherScatterMode.from_any(mode)
            )
            found += equations(f"rows, {mode}", take, _x(n, 3), _ids(n, 4, 2, 1))
    wide = lax.GatherDimensionNumbers(offset_dims=(0, 2), collapsed_slice_dims=(1,), start_index_map=(1, 2, 0))
    for mode in _MODES:
        windows = functools.partial(
            lax.gather,
            dimension_numbers=wide,
            slice_sizes=(4, 1, 2),  # all of dim 0, one row of dim 1, a window of dim 2
            mode=lax.GatherScatterMode.from_any(mode),
        )
        where = np.stack([_ids(5, 6), _ids(3, 6), _RNG.integers(0, 2, 6).astype(np.int32)], -1)
        found += equations(f"windows, {mode}", windows, _x(4, 5, 3), where)
    for dtype in (np.uint8, np.int8, np.int64, np.uint32):
        ids = _RNG.integers(0, 7, (4,)).astype(dtype)
        found += equations(
            f"ids of {dtype.__name__}", lambda x, i: x.at[i].get(mode="fill", fill_value=7), _x(5, 2), ids
        )
        found += equations(f"clipped ids of {dtype.__name__}", lambda x, i: x.at[i].get(mode="clip"), _x(5, 2), ids)
    integers, bools = _x(5, 2, dtype=np.int32), _x(5, 2) > 4
    found += equations("default fill of ints", lambda x, i: x.at[i].get(mode="fill"), integers, _ids(5, 4))
    found += equations("default fill of bools", lambda x, i: x.at[i].get(mode="fill"), bools, _ids(5, 4))
    keys = jax.random.split(jax.random.key(0), 5)
    found += equations("keys", lambda k, i: k.at[i].get(mode="clip"), keys, _ids(5, 4))
    along = _ids(5, 4, 3, outside=False)
    found += equations("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), _x(4, 5), along)
    found += equations("take_along_axis 0", lambda x, i: jnp.take_along_axis(x, i, 0), _x(7, 3), _ids(7, 2, 3))
    found += equations("take", lambda x, i: jnp.take(x, i, axis=1), _x(3, 6), _ids(6, 2, 2))
    found += equations("one element each", lambda x, i, j: x[i, j], _x(4, 5), _ids(4, 6), _ids(5, 6))
    found += equations("static row", lambda x: x[2], _x(5, 3))
    found += equations("outer indices", lambda x, i, j: x[i[:, None], :, j], _x(4, 3, 5), _ids(4, 3), _ids(5, 2))
    return [f for f in found if f.eqn.primitive.name == "gather"]


def _scatter(name, mode):
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    function = getattr(lax, name.replace("-", "_"))
    return functools.partial(function, dimension_numbers=numbers, mode=lax.GatherScatterMode.from_any(mode))


@functools.cache
def _scatters():
    found = []
    for name in _SCATTERS:
        for mode in _MODES:
            # `scatter` keeps any of two updates that meet; distinct indices leave no choice.
            ids = np.array([4, -2, 2, 6, 0, 9], np.int32) if name == "scatter" else _ids(5, 6)
            if name == "scatter" and mode == "clip":
                ids = np.array([4, 1, 2, 3, 0], np.int32)
            found += equations(f"{name}, {mode}", _scatter(name, mode), _x(5, 3), ids[:, None], _x(len(ids), 3))
    wide = lax.ScatterDimensionNumbers(
        update_window_dims=(0, 2), inserted_window_dims=(1,), scatter_dims_to_operand_dims=(1, 2, 0)
    )
    for mode in _MODES:
        windows = functools.partial(lax.scatter_add, dimension_numbers=wide, mode=lax.GatherScatterMode.from_any(mode))
        where = np.stack([_ids(5, 6), _ids(3, 6), _RNG.integers(0, 2, 6).astype(np.int32)], -1)
        found += equations(f"windows, {mode}", windows, _x(4, 5, 3), where, _x(4, 6, 2))
    for dtype in (np.uint8, np.uint32, np.int64):
        found += equations(
            f"ids of {dtype.__name__}",
            lambda x, i, u: x.at[i].add(u, mode="drop"),
            _x(5, 2),
            _RNG.integers(0, 7, (4,)).astype(dtype),
            _x(4, 2),
        )
    found += equations("add of ints", lambda x, i: x.at[i].add(1), _x(7, dtype=np.int32), _ids(7, 5))
    found += equations("a row", lambda x, u: x.at[2].set(u), _x(5, 3), _x(3))
    found += equations("a column", lambda x, u: x.at[:, 1].set(u), _x(5, 3), _x(5))
    found += equations("an element each", lambda x, i, j: x.at[i, j].add(2.0), _x(4, 5), _ids(4, 6), _ids(5, 6))
    found += equations("unique", lambda x, i: x.at[i].set(2.0, unique_indices=True), _x(5, 3), np.array([3, 0, 4]))
    found += equations("bools", lambda x, i: x.at[i].set(True), _x(5, 3) > 4, np.array([3, 0, 4]))

    def embedding(table, ids, out):
        return jax.vjp(lambda t: jnp.take(t, ids, axis=0, mode="clip"), table)[1](out)

    def along(x, ids, out):
        return jax.vjp(lambda t: jnp.take_along_axis(t, ids, 1), x)[1](out)

    found += equations("gradient of a lookup", embedding, _x(7, 4), _ids(7, 4, 2), _x(4, 2, 4))
    found += equations("gradient of take_along_axis", along, _x(5, 7), _ids(7, 5, 1, outside=False), _x(5, 1))
    return [f for f in found if f.eqn.primitive.name in _SCATTERS]


@functools.cache
def _slices():
    found = []
    x = _x(4, 5, 3)
    for start in (-4, 0, 2, 9):
        at = (np.int32(0), np.int32(start), np.int32(1))
        found += equations(f"from {start}", lambda x, i: lax.dynamic_slice_p.bind(x, *i, slice_sizes=(4, 2, 2)), x, at)
        found += equations(
            f"update at {start}", lambda x, u, i: lax.dynamic_update_slice_p.bind(x, u, *i), x, _x(4, 2, 2), at
        )
    found += equations("all", lambda x, i: lax.dynamic_slice(x, (i, i, i), (4, 5, 3)), x, np.int32(3))
    found += equations("of bools", lambda x, i: lax.dynamic_slice(x, (i, i, i), (4, 2, 3)), x > 4, np.int32(1))
    found += equations("of bytes", lambda x, i: lax.dynamic_slice(x, (i,), (300,)), _x(402), np.uint8(101))
    found += equations("row", lambda x, i: lax.dynamic_index_in_dim(x, i, 1), x, np.int64(4))
    found += equations(
        "of keys", lambda k, i: lax.dynamic_slice(k, (i,), (2,)), jax.random.split(jax.random.key(0), 5), np.int32(2)
    )
    found += equations(
        "update of ints",
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i - i)),
        _x(7, 2, dtype=np.int32),
        _x(3, 2, dtype=np.int32),
        np.int32(2),
    )
    found += equations(
        "update of one column",
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
        _x(3, 8),
        _x(3, 1),
        np.int32(5),
    )
    found += equations(
        "update of nothing",
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
        _x(3, 8),
        _x(3, 0),
        np.int32(5),
    )
    return [f for f in found if f.eqn.primitive.name.startswith("dynamic")]


@pytest.mark.parametrize("mesh", MESHES)
def test_gather(mesh):
    assert check(_gathers(), mesh) > 100


@pytest.mark.parametrize("mesh", MESHES)
def test_scatter(mesh):
    assert check(_scatters(), mesh) > 120


@pytest.mark.parametrize("mesh", MESHES)
def test_dynamic_slice(mesh):
    assert check(_slices(), mesh) > 60
