"""``python -m sbpjax.run --as NAME``: a script runs as Python would run it, and so do the processes that it starts."""

import subprocess
import sys

import pytest


def run(*arguments, folder, before=("-m", "sbpjax.run")):
    command = [sys.executable, *before, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


MAIN = """
import multiprocessing, pickle, subprocess, sys
import {name}

class Point:
    def __init__(self, x):
        self.x = x

def double(x):
    import sbpjax
    assert {name}.Tensor is sbpjax.Tensor
    return ({name}.ones(2) * x).sum().item()

if __name__ == "__main__":
    print(sys.argv[1:], sys.modules["__main__"].Point is Point, pickle.loads(pickle.dumps(Point(3))).x)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2]))
    child = "import {name}.nn as nn; from {name} import ones; print(nn.ReLU()(ones(3)).sum().item())"
    print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True).stdout.strip())
    raise SystemExit(0)
"""


@pytest.mark.parametrize("name", ["oneflow", "torch"])
def test_a_script_and_the_processes_it_starts(tmp_path, name):
    script = tmp_path / "script.py"
    script.write_text(MAIN.format(name=name))
    shown = run("--as", name, script, "-m", "--lr", "0.1", folder=tmp_path)
    assert shown == ["['-m', '--lr', '0.1'] True 3", "[2.0, 4.0]", "3.0"]


def test_a_module(tmp_path):
    package = tmp_path / "project"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layer.py").write_text("import oneflow as flow\nsize = flow.ones(2, 3).shape\n")
    (package / "train.py").write_text(
        "import sys\nfrom .layer import size\nprint(__name__, __package__, size.numel(), sys.argv[1:])\n"
    )
    shown = run("--as", "oneflow", "-m", "project.train", "--epochs", "2", folder=tmp_path)
    assert shown == ["__main__ project 6 ['--epochs', '2']"]


def test_exit_codes_and_tracebacks_are_the_scripts(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import oneflow\nraise SystemExit(7)\n")
    command = [sys.executable, "-m", "sbpjax.run", "--as", "oneflow", str(script)]
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == 7
    script.write_text("import oneflow as flow\n\nflow.ones(2).no_such_method()\n")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and 'script.py", line 3' in done.stderr and "no_such_method" in done.stderr


def test_the_launcher_starts_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import oneflow as flow\n"
        "x = flow.ones(1) * flow.env.get_rank()\n"
        "flow.comm.all_reduce(x)\n"
        "P = flow.placement.all('cpu')\n"
        "print('all', x.to_global(P, flow.sbp.split(0)).numpy().tolist())\n"
    )
    before = ("-m", "sbpjax.distributed.launch", "--nproc_per_node", "2", "--master_port", "0", "--cpu_devices", "1")
    shown = run("-m", "sbpjax.run", "--as", "oneflow", script, folder=tmp_path, before=before)
    assert sorted(line for line in shown if "all" in line) == ["[rank 0] all [1.0, 1.0]", "[rank 1] all [1.0, 1.0]"]


def test_a_script_may_switch_it_off_and_meet_the_real_package(tmp_path):
    (tmp_path / "oneflow.py").write_text("real = True\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import oneflow\nassert oneflow.Tensor\n"
        "import sbpjax\n"
        "with sbpjax.mock_oneflow.disable():\n"
        "    import oneflow\n    print(oneflow.real)\n"
        "import oneflow\nprint(hasattr(oneflow, 'Tensor'))\n"
    )
    assert run("--as", "oneflow", script, folder=tmp_path) == ["True", "True"]
