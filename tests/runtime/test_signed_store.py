"""The store of the coordination service under attack, and secrets that differ."""

import json
import os
import subprocess
import sys

from tests.distributed.running import launch, passed


def test_a_stranger_in_the_store(tmp_path):
    passed("strangers.py", 2)


def test_a_forged_failure_is_said_once_and_a_real_one_is_heard():
    """The text of the failure that a stranger wrote first is replaced by the real one."""
    text = """
import time, sbpjax as flow
from sbpjax._core.runtime import processes as world
from sbpjax.distributed.rendezvous import failure
w = world.current()
if w.rank == 0:
    world._state().client.key_value_set(failure._KEY, "rank 0 failed: a lie")
w.exchange("both are here", None)
time.sleep(2)
if w.rank == 0:
    raise ValueError("the truth")
w.exchange("rank 0 does not come", None)
"""
    code, _, err = launch("--nproc_per_node", 2, "--cpu_devices", 1, "--no_python", sys.executable, "-c", text)
    assert code == 1 and "[rank 1] sbpjax: rank 0 failed: ValueError: the truth" in err, err[-3000:]
    assert err.count("[rank 0] sbpjax: rank 0 does not believe sbpjax/failed") == 1 and "a lie" not in err


def ranks(timeout_s, *secrets):
    """Start ranks without a launcher, each with its environment; return what each wrote last and its exit code."""
    port = subprocess.run(
        [sys.executable, "-c", "from sbpjax.distributed.rendezvous.client import free_port; print(free_port())"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    code = "import sbpjax as f; print(f.env.init(), f.utils.host.current().exchange('here', f.env.get_rank()))"
    running = []
    for rank, secret in enumerate(secrets):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SBPJAX_JOB")} | secret
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "RANK": str(rank)}
        env |= {"SBPJAX_TIMEOUT": str(timeout_s), "SBPJAX_CPU_DEVICES": "1"}
        running.append(subprocess.Popen([sys.executable, "-c", code], env=env, stdout=-1, stderr=-2, text=True))
    return [(process.communicate(timeout=200)[0], process.returncode) for process in running]


def test_secrets_of_the_environment(tmp_path):
    file = tmp_path / "secret"
    file.write_text("the same secret for both\n")
    file.chmod(0o600)
    same = ranks(60, {"SBPJAX_JOB_SECRET": "the same secret for both"}, {"SBPJAX_JOB_SECRET_FILE": str(file)})
    assert same == [("True {0: 0, 1: 1}\n", 0)] * 2
    (zero, code_0), (one, code_1) = ranks(8, {"SBPJAX_JOB_SECRET": "the secret of rank 0"}, {})  # the user's own key
    assert code_0 != 0 != code_1
    assert "LostRankError" in zero and "its signature is not of this job's secret" in zero, zero
    assert "ForeignMessageError" in one and "rank 0 there is of another job" in one and "  fix:  export" in one, one


def test_several_nodes_share_a_file(tmp_path):
    """The launcher of each node hands on the name of the file, not a secret of its own."""
    file = tmp_path / "secret"
    text = 'import json, os; print(json.dumps({k: v for k, v in os.environ.items() if "SECRET" in k}))'
    options = ["--nproc_per_node", 1, "--no_python", "--secret_file", file]
    code, out, _ = launch(*options, sys.executable, "-c", text, SBPJAX_JOB_SECRET="x" * 20)
    assert code == 0 and json.loads(out) == {"SBPJAX_JOB_SECRET_FILE": str(file)}
    nodes = ["--nnodes", 2, "--master_port", 29123, "--nproc_per_node", 1, "--no_python"]
    code, out, _ = launch(*nodes, sys.executable, "-c", text)
    assert code == 0 and out == "[rank 0] {}\n"
    code, out, _ = launch("--nproc_per_node", 2, "--no_python", sys.executable, "-c", text)
    (secret,) = {json.loads(line[9:])["SBPJAX_JOB_SECRET"] for line in out.splitlines()}
    assert code == 0 and len(secret) == 64
