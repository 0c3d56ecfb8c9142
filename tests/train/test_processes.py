"""The same run on two processes, and on with its checkpoint on one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sbpjax.train.cli import main
from tests.train.cases import records

CONFIG = "tests.train.run_config"
ROOT = Path(__file__).resolve().parents[2]
LAUNCH = [
    sys.executable,
    "-m",
    "sbpjax.distributed.launch",
    "--nproc_per_node",
    "2",
    "--cpu_devices",
    "1",
    "--port",
    "0",
]


@pytest.mark.slow
def test_two_processes_train_as_one_and_one_goes_on(tmp_path, monkeypatch):
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [*LAUNCH, "--port", "0", "-m", "sbpjax.train", CONFIG]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("step 4 of 4   validation/loss") == 1  # rank 0 alone writes
    monkeypatch.chdir(tmp_path)
    main([CONFIG, "trainer.max_steps=6", "trainer.out=alone"])
    main([CONFIG, "trainer.max_steps=6", "--resume"])
    parts, whole = records(tmp_path / "run"), records(tmp_path / "alone")
    assert list(parts) == list(whole)
    for step in whole:
        for name in ("loss", "validation/loss", "lr", "grad_norm"):
            assert parts[step].get(name) == (whole[step].get(name) and pytest.approx(whole[step][name], rel=1e-5))
