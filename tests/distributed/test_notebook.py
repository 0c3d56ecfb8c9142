"""`%%ranks`: a cell on several processes, in IPython alone and in a real kernel."""

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from sbpjax.distributed import notebook
from tests.distributed.running import ROOT

IPYTHON = pytest.importorskip("IPython", reason="needs the extra `docs`")

SESSION = """
import time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("%load_ext sbpjax")
for number, cell in enumerate(open("cells.txt").read().split("====\\n")):
    print(f"-- {number}", flush=True)
    begun = time.monotonic()
    found = shell.run_cell(cell)
    assert time.monotonic() - begun < 80, "it waited for what sleeps"
    print("error", type(found.error_in_exec or found.error_before_exec).__name__, flush=True)
"""
CELLS = [
    """
    %%ranks 2 --cpu_devices 2
    import sbpjax as flow
    import beside
    x = flow.ones(8, placement=flow.placement.all("cpu"), sbp=flow.sbp.split(0))
    print("of", flow.env.get_world_size(), x.placement.size, beside.NAME)
    x.sum().item()
    """,
    """
    %%ranks 3
    import os, pathlib, time
    print("before")
    pathlib.Path("printed." + os.environ["RANK"]).touch()
    if os.environ["RANK"] == "1":
        while len(list(pathlib.Path().glob("printed.*"))) < 3:
            time.sleep(0.05)
        {}["a key"]
    time.sleep(100)
    """,
    """
    %%ranks 2 --limit 1
    import time
    time.sleep(100)
    """,
    """
    %%ranks 2
    import os, sys
    print("a warning", file=sys.stderr)
    os._exit(3 if os.environ["RANK"] == "1" else 0)
    """,
    """
    %%ranks 2
    import os, sys, time
    if os.environ["RANK"] == "1":
        print("E1126 20:53:38.078835    9901 coordination service ended", file=sys.stderr)
        print("behind it", file=sys.stderr)
        time.sleep(100)
    time.sleep(1)
    raise SystemExit(4)
    """,
    """
    %%ranks
    1
    """,
    """
    %%ranks 2
    1 +
    """,
    """
    %%ranks 2
    import traceback
    try:
        1 / 0
    except ZeroDivisionError:
        traceback.print_exc()
    "the end"
    """,
]


def environment(folder):
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(folder / "ipython"),
        "JAX_PLATFORMS": "cpu",
        "SBPJAX_COMPILE_NOTE": "on",
    }  # the tests turn it off


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    (folder / "cells.txt").write_text("====\n".join(textwrap.dedent(cell).lstrip() for cell in CELLS))
    (folder / "beside.py").write_text("NAME = 'beside'\n")
    run = [sys.executable, "-c", SESSION]
    env = environment(folder)
    done = subprocess.run(run, cwd=folder, env=env, text=True, stdout=-1, stderr=-2, timeout=300)
    assert done.returncode == 0, done.stdout
    plain = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    return [part.partition("\n")[2] for part in re.split(r"^-- ", plain, flags=re.MULTILINE)[1:]]


def test_output_has_its_rank_and_the_last_value_is_shown(session):
    wanted = [f"[rank {rank}] {text}" for rank in (0, 1) for text in ("of 2 4 beside", "8.0")]
    assert sorted(session[0].splitlines()) == sorted([*wanted, "error NoneType"])


def test_an_error_is_shown_once_with_its_rank(session):
    assert "error RankFailedError" in session[1] and session[1].count("KeyError") == 1
    assert "rank 1 of 3 exited with code 1\nTraceback (most recent call last)" in session[1]
    assert 'File "cell.py", line 7, in <module>' in session[1] and session[1].count("] before") == 3


def test_a_limit_ends_all_ranks(session):
    assert (
        "error RankFailedError" in session[2] and "still running: rank 0, rank 1" in session[2] and "fix:" in session[2]
    )


def test_a_rank_that_ends_without_a_traceback(session):
    assert "rank 1 of 2 exited with code 3\nits output is above, after [rank 1]" in session[3]
    assert "[rank 1] a warning" in session[3]


def test_what_ranks_say_in_the_wake_of_another_is_not_shown(session):
    assert "rank 0 of 2 exited with code 4" in session[4]
    assert "coordination" not in session[4] and "behind it" not in session[4]


def test_wrong_options_and_wrong_python_start_nothing(session):
    assert "error DistributedError" in session[5] and "the following arguments are required: ranks" in session[5]
    assert "error SyntaxError" in session[6] and "[rank" not in session[6]


def test_a_traceback_that_the_program_prints_is_its_output(session):
    assert "error NoneType" in session[7] and session[7].count("ZeroDivisionError: division by zero") == 2
    assert session[7].count("'the end'") == 2


@pytest.mark.parametrize(
    ("cell", "source"),
    [
        ("x = 1\n", "x = 1\n"),
        ("1;", "1;"),
        ("", ""),
        ("a\nf(\n  'ä')  # last\n", "a\n__import__('sys').displayhook(f(\n  'ä')\n)\n"),
        ("x = 'ä'; x", "x = 'ä'; __import__('sys').displayhook(x\n)\n"),
    ],
)
def test_the_value_of_a_cell(cell, source):
    assert notebook._with_last_value(cell) == source
    compile(source, "cell.py", "exec")


# A notebook's front end; in a process of its own, since it leaves sockets and event loops open.
FRONT_END = """
import json, sys, time
from jupyter_client import KernelManager

manager = KernelManager(kernel_name="python3")
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=120)
found = []
try:
    for code in json.load(open("cells.json")):
        texts, interrupted, begun = [], [], time.monotonic()

        def hook(m):
            texts.append([m["msg_type"], m["content"].get("text") or list(m["content"].get("data", {}))])
            there = "".join(text for kind, text in texts if kind == "stream").count("begun")
            if there == 2 and not interrupted:
                interrupted.append(True)
                manager.interrupt_kernel()

        reply = client.execute_interactive(code, timeout=120, output_hook=hook)["content"]
        found.append([reply["status"], reply.get("ename"), texts, time.monotonic() - begun])
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
json.dump(found, open("found.json", "w"))
"""
KERNEL_CELLS = [
    "%load_ext sbpjax",
    "%%ranks 2\nimport os\nprint('rank', os.environ['RANK'])",
    "%%ranks 2\nimport time\nprint('begun')\ntime.sleep(100)",
    "import sbpjax as flow\nflow.env.set_cpu_devices(2)\nflow.ones(4, placement=flow.placement.all('cpu'), sbp='S0')",
    "class Squares(flow.utils.data.Dataset):\n    def __len__(self):\n        return 4\n"
    "    def __getitem__(self, i):\n        return flow.tensor(i * i)\n"
    "[x.tolist() for x in flow.utils.data.DataLoader(Squares(), batch_size=2, num_workers=1)]",
    "import sys, time\nfrom sbpjax._core.runtime import progress\nprogress._Cell.first_s = progress._LEAST_S = 0.0\n"
    "with progress.show_progress('Train_0.build: planning'):\n    time.sleep(0.1)",
]


def test_in_a_kernel(tmp_path):
    for package in ("ipykernel", "jupyter_client"):
        pytest.importorskip(package, reason="needs the extra `docs`")
    (tmp_path / "cells.json").write_text(json.dumps(KERNEL_CELLS))
    run = [sys.executable, "-c", FRONT_END]
    done = subprocess.run(run, cwd=tmp_path, env=environment(tmp_path), text=True, stdout=-1, stderr=-2, timeout=300)
    assert done.returncode == 0, done.stdout
    loaded, printed, interrupted, tensor, batches, progress = json.loads((tmp_path / "found.json").read_text())
    assert loaded[:2] == ["ok", None]
    lines = "".join(text for _, text, *_ in printed[2] if isinstance(text, str)).splitlines()
    assert printed[0] == "ok" and {"[rank 0] rank 0", "[rank 1] rank 1"} <= set(lines)
    status, name, texts, seconds = interrupted
    assert (status, name) == ("error", "KeyboardInterrupt") and seconds < 80
    assert "".join(text for _, text in texts if isinstance(text, str)).count("begun") == 2
    assert tensor[0] == "ok" and ["execute_result", ["text/plain", "text/html"]] in tensor[2]
    assert batches[0] == "ok", batches
    kinds = [kind for kind, _ in progress[2]]
    assert progress[0] == "ok" and kinds.count("display_data") == 1 and "update_display_data" in kinds
