"""The long-context example: the same losses on one device, a run that reaches its goal, and one that does not."""

import numpy as np
import pytest

from examples.gpt.data import load_corpus
from examples.long_context import train

TOLERANCE = 1e-5  # relative, float32 sums in another order


def test_losses_are_those_of_one_device():
    corpus = load_corpus()
    alone, ring = (train.train(corpus, context, "ring", 258, 3) for context in (1, 8))
    np.testing.assert_allclose(ring, alone, rtol=TOLERANCE)


def test_a_run_fails_above_its_goal_and_leaves_its_losses(tmp_path, capsys):
    short = ["--tokens", "64", "--context", "2", "--steps", "2", "--out", str(tmp_path)]
    with pytest.raises(SystemExit, match="did not fall to 1.0"):
        train.main([*short, "--goal", "1.0"])
    train.main([*short, "--goal", "9.0", "--by", "ulysses"])
    assert "the goal is 9.0" in capsys.readouterr().out
    assert len((tmp_path / "losses.csv").read_text().split()) == 3 and (tmp_path / "loss.png").stat().st_size > 0


def test_the_report_has_memory_and_permutes():
    text = train.reports(4, "ring", 64)
    assert "activations" in text and "collective-permute" in text


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_run_reaches_its_goal(tmp_path):
    train.main(["--out", str(tmp_path)])
