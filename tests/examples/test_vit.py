"""The ViT recipe: its images, a small run, and the score of the whole one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.vit import train
from sbpjax import models

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
ROOT = Path(__file__).parents[2]


def test_the_images():
    images, held_out = train.digits()
    assert len(images) + len(held_out) == 1797 and len(held_out) == 359
    assert images.pixels.shape[1:] == (8, 8, 1) and images.pixels.max() == 255
    assert np.bincount(held_out.labels).max() / 359 < 0.15
    apart = {image.tobytes() for image in images.pixels} & {image.tobytes() for image in held_out.pixels}
    assert not apart


@pytest.mark.slow
def test_a_small_run_learns_and_leaves_its_results(tmp_path):
    spec = models.Parallel(data=2, device="cpu")
    options = train.Options(out=tmp_path, width=32, layers=1, batch=32, steps=60, lr=5e-3, parallel=spec)
    assert train.train(options) > 0.3
    assert {"model", "loss.png", "metrics.jsonl", "checkpoints"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
@pytest.mark.exhaustive  # minutes
def test_the_score(tmp_path):
    command = [sys.executable, "-m", "examples.vit.train", "--out", str(tmp_path)]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "at least 97% wanted" in output
