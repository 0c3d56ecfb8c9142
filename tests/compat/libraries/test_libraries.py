"""Libraries of PyTorch, as pip installs them, give PyTorch's numbers under the alias: `run.py` has the programs.

`make test` installs `requirements-libraries.lock` in the folder `libraries` of the environment, beside PyTorch, and
runs `FEW`; `make exhaustive` runs all, there and in an environment without PyTorch.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.compat.libraries import graphs, page
from tests.compat.libraries.run import PROGRAMS, RESULTS, TOLERANCE

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(os.environ.get("SBPJAX_LIBRARIES", Path(sys.prefix) / "libraries"))
FEW = ("torchvision_transforms", "torchvision_dataset", "accelerate_loop", "peft_dora", "schedulefree_adamw")

needs_libraries = pytest.mark.skipif(not FOLDER.is_dir(), reason="make test installs the libraries")


def run(python, path, names):
    """Return the lines of programs that run in one process of another interpreter."""
    given = {"PYTHONPATH": os.pathsep.join(map(str, path)), "HF_HUB_OFFLINE": "1", "JAX_PLATFORMS": "cpu"}
    made = subprocess.run(
        [python, "-m", "tests.compat.libraries.run", *names],
        cwd=ROOT, env={**os.environ, **given}, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    lines = [json.loads(line[7:]) for line in made.stdout.splitlines() if line.startswith("RESULT ")]
    assert len(lines) == len(names), made.stderr[-3000:]
    return {line["name"]: line for line in lines}


def agrees(line):
    """Return whether a program ran and gave PyTorch's numbers."""
    return line.get("difference", float("inf")) <= TOLERANCE


def is_timed(line):
    """Return whether the page has the time of a program's first two steps exactly if it takes two."""
    return ("two_steps_s" in line) == ("two_steps_s" in json.loads(RESULTS.read_text())[line["name"]])


@pytest.fixture(scope="module")
def few():
    return run(sys.executable, (FOLDER, ROOT), FEW)


@needs_libraries
@pytest.mark.parametrize("name", FEW)
def test_beside_pytorch(name, few):
    assert agrees(few[name]) and is_timed(few[name]), few[name]


@needs_libraries
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in FEW])
def test_others_beside_pytorch(name):
    line = run(sys.executable, (FOLDER, ROOT), [name])[name]
    assert agrees(line) and is_timed(line), line


@needs_libraries
@pytest.mark.exhaustive
def test_without_pytorch(tmp_path):
    venv.create(tmp_path / "free", with_pip=True)
    python = tmp_path / "free" / "bin" / "python"
    for lock in ("requirements-demo.lock", "requirements-libraries.lock"):
        subprocess.run([python, "-m", "pip", "-q", "install", "--no-deps", "-r", ROOT / lock], check=True)
    assert subprocess.run([python, "-c", "import torch"], capture_output=True).returncode
    lines = run(python, (ROOT,), list(PROGRAMS))
    assert not [line for line in lines.values() if not agrees(line)]


@needs_libraries
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", graphs.MODELS)
def test_graph_on_eight_devices(name):
    enable = "from sbpjax import mock_torch; mock_torch.enable()"
    code = f"{enable}; from tests.compat.libraries import graphs; graphs.check({name!r})"
    path = os.pathsep.join(map(str, (FOLDER, ROOT)))
    given = {"PYTHONPATH": path, "SBPJAX_CPU_DEVICES": "8", "NPROC": "32", "JAX_PLATFORMS": "cpu"}
    env = {**os.environ, **given}
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True)
    assert not made.returncode, made.stderr[-3000:]


@needs_libraries
@pytest.mark.exhaustive
def test_two_processes_train_as_one_with_the_whole_batch():
    launcher = ["sbpjax.distributed.launch", "--port", "0", "--nproc_per_node", "2", "--cpu_devices", "1", "-m"]
    given = {"PYTHONPATH": os.pathsep.join(map(str, (FOLDER, ROOT))), "HF_HUB_OFFLINE": "1", "JAX_PLATFORMS": "cpu"}
    env = {k: v for k, v in {**os.environ, **given}.items() if k not in ("NPROC", "SBPJAX_CPU_DEVICES", "XLA_FLAGS")}
    found = []
    for start in ([], launcher):
        command = [sys.executable, "-m", *start, "tests.compat.libraries.processes", "8"]
        made = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=3600)
        assert "LOSSES " in made.stdout, made.stderr[-3000:]
        found.append(json.loads(made.stdout.partition("LOSSES ")[2].splitlines()[0]))
    one, two = found
    assert two["loop"] == pytest.approx(one["loop"], abs=TOLERANCE)
    # transformers 5.23 logs the sum over processes for BERT, with PyTorch too
    assert two["trainer"] == pytest.approx([2 * loss for loss in one["trainer"]], abs=TOLERANCE)


def test_page_is_in_step():
    assert page.PAGE.read_text() == page.text(), "write it anew: python -m tests.compat.libraries.page"
