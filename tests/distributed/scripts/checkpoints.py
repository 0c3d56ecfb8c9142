"""Run by test_together.py on two ranks of two devices: load what one process saved, save what it will load."""

import sys
from pathlib import Path

import numpy as np

import sbpjax as flow
from sbpjax import checkpoint, errors

rank, ranks = flow.env.get_rank(), flow.env.get_world_size()
folder = Path(sys.argv[1])
everywhere, last = flow.placement.all("cpu"), flow.placement("cpu", [2, 3])
S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum

loaded = checkpoint.load(folder / "one", placement=everywhere, sbp=S(0))
assert loaded["w"].sbp == (S(0),) and loaded["step"] == 5
np.testing.assert_array_equal(loaded["w"].numpy(), np.arange(24.0, dtype=np.float32).reshape(6, 4))
np.testing.assert_array_equal(checkpoint.load(folder / "one")["w"].numpy(), loaded["w"].numpy())

state = {
    "even": flow.arange(32, placement=everywhere, sbp=S(0)).reshape(8, 4),
    "uneven": flow.arange(7, placement=everywhere, sbp=S(0)),
    "sum": flow.ones(2, 3).to_global(everywhere, P),
    "last": flow.arange(6, placement=last, sbp=S(0)),
    "local": flow.tensor([float(rank)]),
    "rank": rank,
}
writing = checkpoint.save(state, folder / "two", asynchronous=True)
writing.wait()
into = {"even": flow.zeros(8, 4, dtype=flow.int64, placement=last, sbp=S(1))}
checkpoint.load(folder / "two", into=into, strict=False)
assert into["even"].numpy().tolist() == np.arange(32).reshape(8, 4).tolist()

flow.save({"x": state["even"], "rank": rank}, folder / "plain")
assert flow.load(folder / "plain")["rank"] == 0

flow.distributed.barrier()
if rank == 0:
    file = max((p for p in (folder / "two" / "arrays").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    kept = file.read_bytes()
    file.write_bytes(kept[:-3])
flow.distributed.barrier()
try:
    checkpoint.load(folder / "two")
    raise AssertionError("a truncated file was not found")
except errors.CheckpointError as error:  # on both ranks, though only one of them looked at the file
    assert "bytes" in str(error)
flow.distributed.barrier()
if rank == 0:
    file.write_bytes(kept)
flow.distributed.barrier()

try:
    checkpoint.save({"a": flow.ones(1)} if rank else {"b": flow.ones(1)}, folder / "never")
    raise AssertionError("different states were saved")
except errors.CheckpointError as error:
    assert "other names" in str(error)
print(f"rank {rank} of {ranks} passed")
