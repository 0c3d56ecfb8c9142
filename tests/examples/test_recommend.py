"""The recipe of recommenders: its samples, a small run, its export, and the scores of the whole one."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from examples.recommend import train

ROOT = Path(__file__).parents[2]
SMALL = train.Options(samples=8192, held_out=1024, epochs=1, batch=256)


def test_wide_and_deep_has_crosses_and_both_have_the_same_labels():
    plain, _, sizes, best = train.generated(SMALL, "DLRM")
    crossed, _, more, same = train.generated(SMALL, "WideDeep")
    assert best == same and len(more) == len(sizes) + 4 and (plain.labels == crossed.labels).all()
    assert (crossed.ids[:, :13] == plain.ids).all() and (crossed.ids < more).all()


def test_a_log_of_criteos_is_read(tmp_path):
    lines = ["\t".join(["1", *["5"] * 13, *["68fd1e64"] * 26])] * 20
    (tmp_path / "day").write_text("\n".join(lines) + "\n")
    samples, held_out, sizes, best = train.logged(replace(SMALL, criteo=tmp_path / "day"))
    assert (len(samples), len(held_out), len(sizes)) == (18, 2, 26) and np.isnan(best)


SMALL_RUN = """
import sys
from dataclasses import replace
from pathlib import Path

import sbpjax as flow
from examples.recommend import train
from sbpjax import models
from tests.examples.test_recommend import SMALL

out = Path(sys.argv[1])
options = replace(SMALL, out=out, samples=40_000, parallel=models.Parallel(fsdp=2, device="cpu"))
auc, best = train.train("DLRM", options)
assert 0.6 < auc < best
graph = flow.load_graph(out / "DLRM" / "model")
held_out = train.generated(options, "DLRM")[1]
said = graph(flow.tensor(held_out.dense[:7]), flow.tensor(held_out.ids[:7])).numpy()
assert said.shape == (7,) and ((said > 0) & (said < 1)).all()
"""


@pytest.mark.slow
def test_a_small_run_learns_and_leaves_its_results(tmp_path):
    command = [sys.executable, "-c", SMALL_RUN, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.exhaustive  # minutes
def test_the_scores(tmp_path):
    command = [sys.executable, "-m", "examples.recommend.train", "--out", str(tmp_path)]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert printed.count("of the best AUC") == 2
