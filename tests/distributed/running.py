"""Start the scripts of this folder under the launcher, each run with a limit after which all of it is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import sbpjax
from tests import xla_flags

LIMIT_S = 420  # a quiet machine needs a twentieth of it
ROOT = Path(sbpjax.__file__).parent.parent
SCRIPTS = Path(__file__).parent / "scripts"
LAUNCHER = ROOT / "sbpjax" / "distributed" / "launch.py"


def start(*arguments, timeout=120, **environment):
    """Start the launcher, in a session of its own, and return its process."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NPROC", "SBPJAX_CPU_DEVICES", "XLA_FLAGS")}
    paths = [str(ROOT), str(ROOT / "examples")]
    env = kept | {"PYTHONPATH": os.pathsep.join(paths), "XLA_FLAGS": xla_flags.QUICK} | environment
    command = [sys.executable, str(LAUNCHER), "--port", "0", "--timeout", str(timeout), *map(str, arguments)]
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(process, limit_s=LIMIT_S):
    """Return ``(exit code, stdout, stderr)`` of a started launcher; what takes too long is killed and fails."""
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.terminate()  # the launcher ends its ranks, which are in sessions of their own
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"still running after {limit_s} s\n{out[-3000:]}\n{err[-3000:]}") from None
    return process.returncode, out, err


def launch(*arguments, timeout=120, limit_s=LIMIT_S, **environment):
    """Run the launcher to its end and return ``(exit code, stdout, stderr)``."""
    return finish(start(*arguments, timeout=timeout, **environment), limit_s)


def passed(script, ranks, devices=1, *arguments, **environment):
    """Run a script of this folder on some ranks; each has to say that it passed."""
    options = ["--nproc_per_node", ranks, "--cpu_devices", devices]
    code, out, err = launch(*options, SCRIPTS / script, *arguments, **environment)
    assert code == 0, f"{out[-2000:]}\n{err[-6000:]}"
    for rank in range(ranks):
        assert f"[rank {rank}] rank {rank} of {ranks} passed" in out, out[-3000:]
