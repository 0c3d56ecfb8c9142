"""What a process starts ends with it, also when it is killed: ranks, cells, data workers, servers, PyTorch's spawn."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from sbpjax._core.runtime import parent_death

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 30  # until all have ended; a quiet machine needs a tenth of a second, or one second where a thread looks
START_S = 180

# Each program starts something whose processes write their ids into files, and waits.
RANKS = """
import sys, time
from sbpjax.distributed import launch
launch.main(["--nproc_per_node", "2", "--master_port", "0", "--no_python", "sh", "-c",
    "sleep 1000 & echo $! > child$RANK.pid; echo $$ > rank$RANK.pid; trap '' TERM INT; while true; do sleep 1; done"])
"""
CELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("%load_ext sbpjax")
shell.run_cell('''%%ranks 2
import os, pathlib, time
pathlib.Path("rank" + os.environ["RANK"] + ".pid").write_text(str(os.getpid()))
time.sleep(1000)
''')
"""
WORKERS = """
import os, pathlib, re, threading, time
import sbpjax as flow

class Slow(flow.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        pathlib.Path(f"worker{os.getpid()}.pid").write_text(str(os.getpid()))
        WAIT

if __name__ == "__main__":
    loader = flow.utils.data.DataLoader(Slow(), num_workers=2)
    START
"""
ASLEEP, IN_C = "time.sleep(1000)", "re.match('(a*)*b', 'a' * 60)"  # the second does not let another thread run
MAIN, THREAD = "next(iter(loader))", "threading.Thread(target=lambda: next(iter(loader))).start(); time.sleep(1000)"
TORCHS = """
import os, pathlib, time
from sbpjax._core.compat.torch_names import multiprocessing

def run(i):
    pathlib.Path(f"process{i}.pid").write_text(str(os.getpid()))
    time.sleep(1000)

if __name__ == "__main__":
    multiprocessing.start_processes(run, nprocs=2, start_method="METHOD")
"""
SERVER = """
import pathlib
from sbpjax.serving import Repository, Server

inside = pathlib.Path("server/bin")
inside.mkdir(parents=True)
(inside.parent / "backends/python").mkdir(parents=True)
(inside / "tritonserver").write_text("#!/bin/sh\\nsleep 1000 & echo $! > stub.pid; echo $$ > server.pid\\nwait\\n")
(inside / "tritonserver").chmod(0o755)

class Models:
    path, models = "models", ()

with Server(Models(), binary=inside / "tritonserver", http_port=1):
    pass
"""
TIED = """
import sys, threading, time
from sbpjax._core.runtime.parent_death import ProcessTie
tie = ProcessTie()
command = ["sh", "-c", "sleep 1000 & echo $! > child.pid; echo $$ > program.pid; trap '' TERM; wait"]
START
"""
PROGRAMS = {
    "ranks and what they start": (RANKS, 4),
    "a cell of a notebook": (CELL, 2),
    "data workers": (WORKERS.replace("WAIT", ASLEEP).replace("START", MAIN), 2),
    "data workers in C": (WORKERS.replace("WAIT", IN_C).replace("START", MAIN), 2),
    "data workers of a thread": (WORKERS.replace("WAIT", ASLEEP).replace("START", THREAD), 2),
    "torch spawn": (TORCHS.replace("METHOD", "spawn"), 2),
    "torch fork": (TORCHS.replace("METHOD", "fork"), 2),
    "torch forkserver": (TORCHS.replace("METHOD", "forkserver"), 2),
    "a Triton server": (SERVER, 2),
    "of a thread that ends": (
        TIED.replace("START", "threading.Thread(target=tie.start, args=(command,)).start(); time.sleep(1000)"),
        2,
    ),
    "while a copy of the parent lives": (
        TIED.replace(
            "START",
            "import os\nif os.fork() == 0:\n    time.sleep(60)\n    os._exit(0)\ntie.start(command); time.sleep(1000)",
        ),
        2,
    ),
}


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def noted(folder, count, process=None):
    """Return the ids that processes have written into a folder, when there are so many."""
    end = time.monotonic() + START_S
    while True:
        pids = [int(text) for file in folder.glob("*.pid") if (text := file.read_text().strip())]
        if len(pids) >= count:
            return pids
        assert time.monotonic() < end and (process is None or process.poll() is None), (folder / "log").read_text()
        time.sleep(0.05)


def all_end(pids):
    end = time.monotonic() + LIMIT_S
    while living := [pid for pid in pids if is_alive(pid)]:
        if time.monotonic() > end:
            for pid in living:
                os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.05)
    return True


def begin(source, folder):
    (folder / "program.py").write_text(source)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "IPYTHONDIR": str(folder / "ipython")}
    with open(folder / "log", "w") as log:
        return subprocess.Popen(
            [sys.executable, "program.py"], cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_that_a_killed_process_started_ends(name, tmp_path):
    if "notebook" in name:
        pytest.importorskip("IPython", reason="needs the extra `docs`")
    source, count = PROGRAMS[name]
    process = begin(source, tmp_path)
    try:
        pids = noted(tmp_path, count, process)
    finally:
        process.kill()
        process.wait()
    assert all_end(pids), (tmp_path / "log").read_text()


def test_a_parent_that_is_killed_while_it_starts_something(tmp_path):
    """At any moment: what has been started by then has ended soon, whether or not the parent knew of it."""
    source = textwrap.dedent("""
        import sys, time; sys.path.insert(0, {!r})
        import parent_death
        tie = parent_death.ProcessTie()
        for i in range(20):
            tie.start(["sh", "-c", f"echo $$ > {{i}}.pid; sleep 1000"])
        time.sleep(1000)
    """).format(str(Path(parent_death.__file__).parent))
    for turn in range(6):
        folder = tmp_path / str(turn)
        folder.mkdir()
        process = begin(source, folder)
        noted(folder, 1, process)
        time.sleep(turn * 0.02)
        process.kill()
        process.wait()
        for _ in range(2):  # what had been started, and had not come so far as to write its number, ends, too
            assert all_end(noted(folder, 1))
            time.sleep(0.5)


@pytest.mark.skipif(sys.platform != "linux", reason="needs the parent-death signal of Linux")
def test_the_kernel_ends_what_has_lost_its_watcher(tmp_path):
    source = TIED.replace("START", "tie.start(command); time.sleep(1000)")
    process = begin(source, tmp_path)
    noted(tmp_path, 2, process)
    program, child = (int((tmp_path / f"{name}.pid").read_text()) for name in ("program", "child"))
    watchers = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"watch" in (folder / "cmdline").read_bytes() and os.getpgid(int(folder.name)) == program:
                watchers.append(int(folder.name))
        except (OSError, ProcessLookupError):
            pass
    assert len(watchers) == 1
    os.kill(watchers[0], signal.SIGKILL)
    process.kill()
    process.wait()
    assert all_end([program])
    os.kill(child, signal.SIGKILL)


def test_a_program_of_a_thread_outlives_the_thread(tmp_path):
    source = TIED.replace(
        "START", "t = threading.Thread(target=tie.start, args=(command,)); t.start(); t.join(); time.sleep(1000)"
    )
    process = begin(source, tmp_path)
    pids = noted(tmp_path, 2, process)
    time.sleep(1)
    assert all(is_alive(pid) for pid in pids)
    process.kill()
    process.wait()
    assert all_end(pids)


def test_a_program_is_as_without_a_tie():
    """Its output ends with it, signals do what they do by default, and it has no children that it did not start."""
    with parent_death.ProcessTie() as tie:
        code = "import signal; print(signal.getsignal(signal.SIGINT))"
        without = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout
        done = tie.start([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert done.communicate(timeout=60)[0] == without and done.returncode == 0
        done = tie.start(["sh", "-c", "yes | head -1; exit 7"], stdout=subprocess.PIPE, text=True)  # ends by SIGPIPE
        assert done.communicate(timeout=60)[0] == "y\n" and done.returncode == 7
        code = "import os\ntry: os.wait()\nexcept ChildProcessError: print('none')"
        done = tie.start([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert done.communicate(timeout=60)[0] == "none\n"
        done = tie.start(["no-such-program"], stderr=subprocess.PIPE, text=True)
        assert "cannot run 'no-such-program': No such file or directory" in done.communicate(timeout=60)[1]
        assert done.returncode == 127
        sleeping = tie.start(["sleep", "1000"])
    assert sleeping.wait(60) == -signal.SIGKILL
    tie.close()


def test_processes_of_nothing_else_are_ended():
    with parent_death.ProcessTie():
        other = subprocess.Popen(["sleep", "1000"])
    time.sleep(0.2)
    assert other.poll() is None
    other.kill()
    other.wait()
