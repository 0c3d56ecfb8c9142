"""`from_pretrained` and `save_pretrained` of `transformers` under the alias, from and to folders of PyTorch's.

`pretrained.py` says what runs: PyTorch writes models and takes its steps, sbpjax does the same from the same files, and
PyTorch reads what sbpjax saved.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.models_torch.both import TOLERANCE

PROGRAM = Path(__file__).with_name("pretrained.py")
ROOT = Path(__file__).parents[2]
NAMES = ("llama", "gpt2", "bert", "vit")

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """Run the three parts and return their numbers, and the folder."""
    folder, found = tmp_path_factory.mktemp("pretrained"), {}
    own = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "SBPJAX_CPU_DEVICES": "8", "NPROC": "32"}
    environment = {**os.environ, **own, "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    for part in ("write", "use", "read"):
        alias = ["-m", "sbpjax.run", "--as", "torch"] if part == "use" else []
        command = [sys.executable, *alias, str(PROGRAM), part, str(folder)]
        done = subprocess.run(command, env=environment, cwd=folder, timeout=600, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        found[part] = dict(np.load(folder / f"{part}.npz"))
    return folder, found


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE)


def test_a_folder_of_pytorch_s_gives_its_numbers(numbers):
    _, found = numbers
    assert {key.split()[0] for key in found["write"]} == set(NAMES)
    for key, wanted in found["write"].items():  # logits, losses of training steps, logits after them
        if key.endswith("tokens"):
            np.testing.assert_array_equal(found["use"][key], wanted, err_msg=key)
        else:
            close(found["use"][key], wanted)


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_laid_out_by_the_planner_trains_alike(numbers, name):
    _, found = numbers
    ours = found["use"]
    assert ours[f"graph {name} global"] and ours[f"graph {name} split"]
    for step in range(2):
        close(ours[f"graph {name} loss {step}"], found["write"][f"{name} loss {step}"])


@pytest.mark.parametrize("place", ["trained", "graph"])
@pytest.mark.parametrize("name", NAMES)
def test_pytorch_reads_what_was_saved(numbers, place, name):
    _, found = numbers
    moved = np.abs(found["write"][f"{name} trained"] - found["write"][f"{name} logits"]).max()
    assert moved > 100 * TOLERANCE  # the trained weights, not those from before
    close(found["read"][f"{place} {name}"], found["write"][f"{name} trained"])


def test_the_files_are_pytorch_s(numbers):
    folder, _ = numbers
    for place in ("trained", "torch"):
        assert len(list((folder / place / "llama").glob("model-*-of-*.safetensors"))) > 1
    ours, theirs = ((folder / place / "model.safetensors").read_bytes() for place in ("half", "torch/half"))
    assert ours == theirs  # untrained, in bfloat16
