"""A program that ends behind `manager.save`, in whatever way: the checkpoint is there, or it is said that it is not."""

import re
import subprocess
import sys
from pathlib import Path

import sbpjax
from sbpjax import checkpoint

GUIDE = Path(sbpjax.__file__).parent.parent / "docs" / "how_to" / "checkpoints.md"

ENDS = {
    "its end": ("", 0, ""),
    "sys.exit": ("sys.exit(3)", 3, ""),
    "an error": ("1 / 0", 1, "ZeroDivisionError"),
    "Ctrl-C": ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
    "a full disk": ("full()", 1, "rank 0: OSError: [Errno 27] File too large"),
    "a save at exit": ("atexit.register(lambda: manager.save(2, state))", 0, ""),
}
SCRIPT = """
import atexit, resource, signal, sys, time
import sbpjax as flow
from sbpjax.data.checkpoint import blocks

write = blocks.write
blocks.write = lambda *arguments: (time.sleep(1), write(*arguments))  # the program ends long before

def full():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))

state = {"model": flow.nn.Linear(64, 64), "epoch": 3}
manager = flow.checkpoint.Manager(sys.argv[1])
manager.save(1, state)
"""


def test_a_program_that_ends_behind_a_save(tmp_path):
    """All ways at once: each takes seconds to start."""
    started = {}
    for number, (name, (end, *_)) in enumerate(ENDS.items()):
        (tmp_path / f"{number}.py").write_text(SCRIPT + end)
        command = [sys.executable, "-W", "error", str(tmp_path / f"{number}.py"), str(tmp_path / str(number))]
        started[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for number, (name, (_, code, words)) in enumerate(ENDS.items()):
        out, err = started[name].communicate(timeout=120)
        assert started[name].returncode in (code, -2 if code == 130 else code), (name, out, err)
        assert words in err, (name, err)
        folder = tmp_path / str(number)
        if name == "a full disk":
            assert list(folder.iterdir()) == [] and "Traceback" not in err and len(err.strip().splitlines()) == 4
            continue
        manager = checkpoint.Manager(folder)
        last = 2 if name == "a save at exit" else 1
        assert manager.latest() == last, (name, err)
        assert manager.restore()[1]["epoch"] == 3
        assert sorted(p.name for p in folder.iterdir()) == [f"step_{s:09d}" for s in range(1, last + 1)]


def test_the_program_of_the_guide(tmp_path):
    program = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)[1]
    subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=tmp_path, timeout=120, check=True)
    manager = checkpoint.Manager(tmp_path / "run7")
    step, state = manager.restore()
    assert step == state["epoch"] == 3 and len(state["optimizer"]["state"]) == 2 and manager.steps() == [1, 2, 3]
