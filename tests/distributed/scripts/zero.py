"""Run by test_together.py and test_zero.py: load what eight devices of one process saved under ZeRO, on all ranks here.

zero.py FOLDER STAGE
"""

import sys
from pathlib import Path

import numpy as np

import sbpjax as flow
from sbpjax import checkpoint, errors
from tests.distributed import zero_state

folder, stage = Path(sys.argv[1]), int(sys.argv[2])
rank, ranks = flow.env.get_rank(), flow.env.get_world_size()
line = list(flow.placement.all("cpu").ranks)
grid = np.array(line).reshape(2, -1).tolist()
S, B = flow.sbp.split, flow.sbp.broadcast
recorded = np.load(folder / "zero.npz")
losses = recorded["losses"].tolist()
wanted = {name: recorded[name] for name in recorded.files if name != "losses"}

layouts = [(line, S(0)), (line, B), (line[-1:], B), (grid, [S(1), S(0)])]
run = zero_state.check(folder / "zero", wanted, losses, grid, stage, layouts)
checkpoint.save(run.state(), folder / "zero_back")


def damaged(file, harm):
    """Assert that a load finds the fault on all ranks, and writes nothing."""
    kept = file.read_bytes()
    flow.distributed.barrier()
    if rank == 0:
        harm(file)
    flow.distributed.barrier()
    into = {"model": {name: flow.zeros_like(x) for name, x in run.net.state_dict().items()}}
    try:
        checkpoint.load(folder / "zero", into=into)
        raise AssertionError("the fault was not found")
    except errors.CheckpointError as error:
        text = str(error)
    assert not any(a.any() for a in zero_state.values(into).values())
    if rank == 0:
        file.write_bytes(kept)
    flow.distributed.barrier()
    return text


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


shards = sorted((p for p in (folder / "zero" / "arrays").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
assert "checksum" in damaged(shards[-1], flip)
assert "bytes" in damaged(shards[-1], lambda file: file.write_bytes(file.read_bytes()[:-3]))
assert "missing" in damaged(shards[-1], lambda file: file.unlink())
print(f"rank {rank} of {ranks} passed")
