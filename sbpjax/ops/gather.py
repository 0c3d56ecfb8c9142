"""The lax gathers and scatters that indexing, reductions and losses share, written once with small jaxprs.

`jnp.take_along_axis` builds index grids for every dim; here the other dims are *batching dims* of one gather, so it
is one equation that splits along each of them. Worked case: x of shape (N, C), index of shape (N,): `pick(x, index,
1)[n]` is `x[n, index[n]]`.

An index outside the dim reads NaN (the smallest integer for integers) and writes nothing: wrong data never looks right.
"""

from __future__ import annotations

from jax import lax

FILL = lax.GatherScatterMode.FILL_OR_DROP


def pick(x, index, dim: int):
    """Return one element of ``dim`` per place: the shape of x without ``dim``, and of ``index``."""
    others = tuple(d for d in range(x.ndim) if d != dim)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        operand_batching_dims=others,
        start_indices_batching_dims=tuple(range(len(others))),
    )
    index = lax.expand_dims(index, (index.ndim,))
    return lax.gather(x, index, numbers, (1,) * x.ndim, mode=FILL)


def along_numbers(ndim: int, dim: int) -> tuple:
    """Return the gather's and the scatter's dimension numbers for an index with all dims of x (`take_along`)."""
    others = tuple(d for d in range(ndim) if d != dim)
    gather = lax.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        operand_batching_dims=others,
        start_indices_batching_dims=others,
    )
    scatter = lax.ScatterDimensionNumbers(
        update_window_dims=(),
        inserted_window_dims=(dim,),
        scatter_dims_to_operand_dims=(dim,),
        operand_batching_dims=others,
        scatter_indices_batching_dims=others,
    )
    return gather, scatter


def take_along(x, index, dim: int):
    """Return ``x[..., index[..., j, ...], ...]`` along ``dim``; the index has x's shape but for that dim."""
    numbers, _ = along_numbers(x.ndim, dim)
    return lax.gather(x, lax.expand_dims(index, (index.ndim,)), numbers, (1,) * x.ndim, mode=FILL)
