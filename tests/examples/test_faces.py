"""The recipe of faces: its images and pairs, how it is judged, a small run, and the score of the whole one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.faces import data

ROOT = Path(__file__).parents[2]


def test_images_are_a_function_of_world_and_seed():
    images, who = data.faces(5, 3)
    assert images.shape == (15, 16, 16) and images.dtype == np.uint8 and who.tolist() == np.repeat(range(5), 3).tolist()
    assert (data.faces(5, 3)[0] == images).all() and (data.faces(5, 3, world=1)[0] != images).any()
    flat = images.reshape(15, -1) - images.reshape(15, -1).mean(1, keepdims=True)
    cosines = np.corrcoef(flat)
    same = who[:, None] == who
    assert cosines[same & ~np.eye(15, dtype=bool)].mean() > cosines[~same].mean() + 0.3


def test_pairs_and_what_they_tell():
    who = np.repeat(range(20), 4)
    chosen, same = data.pairs(who, 50)
    assert chosen.shape == (100, 2) and (chosen[:, 0] != chosen[:, 1]).all()
    assert ((who[chosen[:, 0]] == who[chosen[:, 1]]) == same).all() and same.sum() == 50
    known = np.eye(20)[who]
    assert data.verification(known, chosen, same) == 1.0
    noise = np.random.default_rng(0).standard_normal((80, 64))
    assert 0.3 < data.verification(noise / np.linalg.norm(noise, axis=1, keepdims=True), chosen, same) < 0.7


SMALL_RUN = """
import sys
from pathlib import Path

import numpy as np

import sbpjax as flow
from examples.faces import data, train

out = Path(sys.argv[1])
options = train.Options(out=out, people=64, strangers=40, sample=32, batch=32, steps=60, devices=2)
assert train.train(options) > 0.6
assert {"model", "loss.png", "metrics.jsonl"} <= {path.name for path in out.iterdir()}
network = flow.load_graph(out / "model")
features = network(flow.tensor(train.pixels_of(data.faces(3, 1)[0]))).numpy()
np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)
"""


@pytest.mark.slow
def test_a_small_run_learns_and_leaves_its_results(tmp_path):
    command = [sys.executable, "-c", SMALL_RUN, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.exhaustive  # minutes
def test_the_score(tmp_path):
    command = [sys.executable, "-m", "examples.faces.train", "--out", str(tmp_path)]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "at least 95% wanted" in output
