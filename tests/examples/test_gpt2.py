"""The GPT-2 recipe: the same losses on 2 × 2 × 2 devices as on one, its plot, and the score it has to reach."""

import json
import re

import numpy as np
import pytest

from examples.gpt2 import data
from sbpjax.train.cli import main

CONFIG = "examples.gpt2.config"
TOLERANCE = 2e-5  # relative, float32 sums in another order over the steps
SMALL = [
    "steps=4",
    "trainer.model.config.n_embd=16",
    "trainer.batch_size=8",
    "trainer.log_every=1",
    "trainer.hooks.validation.batches=1",
    "trainer.hooks.goal=null",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a directory with the token files, of a few texts."""
    folder = tmp_path_factory.mktemp("gpt2")
    with pytest.MonkeyPatch.context() as patch:
        texts = data.documents()[:40]
        patch.setattr(data, "documents", lambda: texts)
        data.write(folder / "data", 512)
    return folder


def losses(out):
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [one[name] for one in records for name in ("loss", "validation/loss") if name in one]


def run(folder, name, *changes):
    main([CONFIG, *SMALL, f"folder={folder / 'data'}", f"trainer.out={folder / name}", *changes])
    return losses(folder / name)


@pytest.mark.slow
def test_losses_are_those_of_one_device(folder):
    axes = [f"trainer.parallel.{axis}=1" for axis in ("data", "tensor", "pipeline")]
    alone = run(folder, "alone", *axes)
    np.testing.assert_allclose(run(folder, "3d"), alone, rtol=TOLERANCE)
    assert (folder / "3d" / "loss.png").stat().st_size > 5_000
    by_planner = [*axes[1:], "trainer.parallel.data=4", "--auto"]
    np.testing.assert_allclose(run(folder, "auto", *by_planner), alone, rtol=TOLERANCE)


def test_a_missed_score_fails(folder):
    axes = [f"trainer.parallel.{axis}=1" for axis in ("data", "tensor", "pipeline")]
    with pytest.raises(SystemExit, match="validation/loss of at most 4.6"):
        run(
            folder,
            "missed",
            *axes,
            "trainer.hooks.goal={_call_: 'sbpjax.train:TargetMetric', metric: validation/loss, at_most: 4.6}",
        )


def test_text_and_frequencies(folder):
    assert data.unigram_entropy(str(folder / "data"), 512) < np.log(512)
    texts = data.documents()
    assert len(texts) > 150 and any("import" in text for text in texts)
    written = (folder / "data" / "train.bin").read_bytes()
    data.write(folder / "data", 512)  # what is there stays
    assert (folder / "data" / "train.bin").read_bytes() == written


@pytest.mark.exhaustive  # some minutes
@pytest.mark.slow
def test_the_whole_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main([CONFIG])
    text = capsys.readouterr().out
    assert float(re.search(r"reached: validation/loss is ([\d.]+)", text)[1]) <= 4.6
