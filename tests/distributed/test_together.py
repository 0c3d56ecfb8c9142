"""What needs two processes, in one group of them: the start of a group costs more than most of what runs in it."""

import sbpjax as flow
from sbpjax import checkpoint
from tests.distributed.running import SCRIPTS, launch

RANKS, DEVICES = 2, 2
FIXED = ["training.py", "ddp.py", "collectives.py"]


def test_two_processes_of_two_devices(tmp_path):
    where = flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    w = flow.arange(24, dtype=flow.float32, placement=where, sbp=[flow.sbp.broadcast] * 2).reshape(6, 4)
    w = w.to_global(sbp=[flow.sbp.split(1), flow.sbp.split(0)])
    checkpoint.save({"w": w, "step": 5}, tmp_path / "one")

    scripts = [*FIXED, f"checkpoints.py {tmp_path}", f"misuse.py {tmp_path}"]
    options = ["--nproc_per_node", RANKS, "--cpu_devices", DEVICES]
    code, out, err = launch(*options, SCRIPTS / "several.py", *scripts)
    assert code == 0, f"{out[-2000:]}\n{err[-6000:]}"
    for rank in range(RANKS):
        for script in scripts:
            assert f"[rank {rank}] rank {rank} is done with {script.split()[0]}" in out, out[-3000:]
        assert out.count(f"[rank {rank}] rank {rank} of {RANKS} passed") == len(scripts), out[-3000:]

    loaded = checkpoint.load(tmp_path / "two", placement=where, sbp=[flow.sbp.broadcast, flow.sbp.split(0)])
    assert loaded["even"].numpy().ravel().tolist() == list(range(32))
    assert loaded["uneven"].tolist() == list(range(7)) and loaded["last"].tolist() == list(range(6))
    assert loaded["sum"].tolist() == [[2.0] * 3] * 2 and loaded["local"].tolist() == [0.0] and loaded["rank"] == 0
    assert not (tmp_path / "never").exists()
    assert flow.load(tmp_path / "plain")["x"].shape == (8, 4)
