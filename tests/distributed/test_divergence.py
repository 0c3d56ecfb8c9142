"""Ranks that part after they agreed on every program: each is told where, at the latest before anything is written."""

from tests.distributed.running import SCRIPTS, launch, passed


def test_eleven_ways_to_part_and_work_that_may_differ(tmp_path):
    passed("divergence.py", 2, 1, tmp_path)


def test_members_of_a_subgroup_part_and_all_ranks_are_told():
    options = ["--nproc_per_node", 3, "--cpu_devices", 1]
    code, out, err = launch(*options, SCRIPTS / "subgroups.py")
    assert code == 1, f"{out[-2000:]}\n{err[-6000:]}"
    for rank in range(3):
        assert f"[rank {rank}] rank {rank} is in step" in out
        lines = [line for line in err.splitlines() if line.startswith(f"[rank {rank}]")]
        assert any("of ranks [1, 2] together differs" in line for line in lines), err[-6000:]
        assert any("rank 1: add " in line and "rank 2: mul " in line for line in lines), err[-6000:]
