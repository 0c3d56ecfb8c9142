"""Every rank holds a shard of the keys: the curve, and a snapshot of another number of ranks.

    launch --nproc_per_node 2 tables.py FOLDER KIND [SNAPSHOT]     # losses to FOLDER/losses-2.npy

With a snapshot's name it is read first, and one step is taken.
"""

import sys
from pathlib import Path

import numpy as np

import sbpjax as flow
from sbpjax.errors import TableError
from tests.one_embedding.training import tables, train

folder, kind = Path(sys.argv[1]), sys.argv[2]
ranks, rank = flow.env.get_world_size(), flow.env.get_rank()
placement = flow.placement.all("cpu")
losses, model = train(folder / kind, kind, placement=placement, prefetch=kind == "disk")
table = model.embedding
held = [0] * ranks
flow.distributed.all_gather_object(held, table.num_rows)
assert min(held) > 0.7 * sum(held) / ranks, held  # each has its part of the keys
table.save_snapshot(f"of-{ranks}")
for name in table.snapshot_names():
    table.load_snapshot(name)
    again = [0] * ranks
    flow.distributed.all_gather_object(again, table.num_rows)
    assert sum(again) == sum(held), (name, again)
# What is wrong on one process is an error on all.
small = tables(folder / "small", name="small", key_type=flow.int32)
small.to_global(placement, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
for wrong in (np.arange(6).reshape(2, 3) + 2**40 * (rank == 1), np.arange(9000).reshape(-1, 3) * (rank == 1)):
    try:
        small(flow.tensor(wrong).to_global(placement, flow.sbp.split(0)))
    except TableError as error:
        message = str(error)
        assert "the id" in message or "keys in a step" in message or "another process" in message, message
    else:
        raise AssertionError("no error")
if rank == 0:
    np.save(folder / f"losses-{kind}-{ranks}.npy", losses)
print(f"rank {rank} of {ranks} passed")
