# %% [markdown]
# # Global tensors in pictures
#
# A tensor on several devices is one tensor. A cell that ends with a tensor shows its values, and the part on each
# device. Background: [global tensors in pictures](../tutorials/pictures.md).

# %%
import sbpjax as flow
from sbpjax import sbp

flow.env.set_cpu_devices(8)  # eight virtual devices; no effect on GPUs and TPUs
row = flow.placement("cpu", [0, 1, 2, 3])
row

# %% [markdown]
# ## Split
#
# `split(0)` divides the rows. Six rows on four ranks are split as 2, 2, 1 and 1: sizes need not divide evenly.

# %%
x = flow.arange(24, dtype=flow.float32).reshape(6, 4)
rows = x.to_global(row, sbp.split(0))
rows

# %% [markdown]
# `split(1)` divides the columns. The conversion is an all-to-all: every rank sends a part to every other rank. Values
# do not change.

# %%
columns = rows.to_global(sbp=sbp.split(1))
columns

# %% [markdown]
# ## Broadcast
#
# Every rank holds the whole tensor.

# %%
flow.visualize(rows.to_global(sbp=sbp.broadcast))

# %% [markdown]
# ## Partial sum
#
# Each rank holds a summand of full size. A product whose inner dim is split gives a partial sum, without communication.

# %%
weight = flow.ones(4, 2).to_global(row, sbp.split(0))
summands = columns @ weight
flow.visualize(summands)

# %% [markdown]
# The sum is computed when an op needs it. `explain` shows the conversion and its bytes per device. An all-reduce gives
# copies; a reduce-scatter gives parts and moves fewer bytes.

# %%
flow.explain(lambda s: s.to_global(sbp=sbp.broadcast), summands)

# %%
flow.explain(lambda s: s.to_global(sbp=sbp.split(0)), summands)

# %% [markdown]
# ## Grids
#
# A placement may be a grid, with one sbp for each of its axes. Here the first axis splits rows and the second columns.

# %%
grid = flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
grid

# %%
tiles = x.to_global(grid, [sbp.split(0), sbp.split(1)])
tiles

# %% [markdown]
# A batch has this layout if the model is divided over the second axis: rows are split, and the ranks of a grid row
# hold copies.

# %%
batch = x.to_global(grid, [sbp.split(0), sbp.broadcast])
flow.visualize(batch)

# %% [markdown]
# ## Layouts of results
#
# The planner chooses the layout of each result. Here the rows stay split, and the split columns of the weight split the
# result's columns. No bytes move.

# %%
weight = flow.ones(4, 8).to_global(grid, [sbp.broadcast, sbp.split(1)])
flow.visualize(batch @ weight)

# %%
flow.explain(flow.matmul, batch, weight)

# %% [markdown]
# ## Next steps
#
# * [Five minutes](../tutorials/five_minutes.md): train a network with these layouts.
# * [From data parallel to 3-D](data_parallel_to_3d.ipynb): the same layouts on a model.
