"""Two processes read, train, write and generate as one does."""

from pathlib import Path

from tests.distributed.running import launch


def test_a_model_on_two_processes(tmp_path):
    script = Path(__file__).with_name("of_ranks.py")
    code, out, err = launch("--nproc_per_node", 2, "--cpu_devices", 2, script, tmp_path / "folder")
    assert code == 0 and out.count("rank passed") == 2, f"{out[-2000:]}\n{err[-6000:]}"
    assert {file.name for file in tmp_path.iterdir()} == {"folder"}
