"""The BERT recipe: its text, both runs in small, and the score of the whole one."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from examples import recipe
from examples.bert import data, train
from sbpjax import models
from sbpjax.train.data import Columns, LabelledTexts, TokenFile, read_tokenizer

pytest.importorskip("tokenizers", reason="tokenizers is not installed")
ROOT = Path(__file__).parents[2]


def test_the_text(tmp_path):
    packages = ("logging", "urllib", "xml")
    data.write(tmp_path, 500, packages)
    lines = {part: (tmp_path / f"{part}.jsonl").read_text().splitlines() for part in ("train", "held_out")}
    rows = {part: list(map(json.loads, lines[part])) for part in lines}
    texts = {part: {row["text"] for row in rows[part]} for part in rows}
    assert len(rows["train"]) == pytest.approx(7 * len(rows["held_out"]), rel=0.1)
    assert {row["package"] for row in rows["held_out"]} == set(packages) and not texts["train"] & texts["held_out"]
    assert all(data.PASSAGE_CHARACTERS <= len(text) for text in texts["train"])
    assert 1 / 3 < data.majority(tmp_path) < 0.6
    assert len(TokenFile(tmp_path / "pages")) > 50


@pytest.mark.slow
def test_a_small_run_learns_and_leaves_its_results(tmp_path):
    options = train.Options(
        out=tmp_path,
        vocabulary=600,
        length=32,
        width=32,
        layers=1,
        pretrain_steps=30,
        steps=20,
        lr=1e-2,
        packages=("logging", "xml"),
        parallel=models.Parallel(data=2, device="cpu"),
    )
    accuracy = train.train(options)
    losses = recipe.curve(tmp_path / "pretraining", "loss")[1]
    assert losses[-1] < losses[0] - 0.2
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"data", "pretraining", "pretrained", "finetuning", "classifier", "loss.png"}
    for folder in ("pretrained", "classifier"):
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= {p.name for p in (tmp_path / folder).iterdir()}
    # What is written has the accuracy that is told.
    model = models.from_pretrained(tmp_path / "classifier").eval()
    columns = Columns("text", "package", classes=options.packages)
    held_out = LabelledTexts(tmp_path / "data" / "held_out.jsonl", read_tokenizer(tmp_path / "data"), columns, 32)
    rows = {name: flow.tensor(np.stack([sample[name] for sample in held_out])) for name in held_out[0]}
    predicted = model(rows["input_ids"], rows["token_type_ids"], rows["attention_mask"]).argmax(-1)
    assert (predicted == rows["labels"]).float().mean().item() == pytest.approx(accuracy, abs=0.02)


@pytest.mark.slow
@pytest.mark.exhaustive  # minutes
def test_the_score(tmp_path):
    command = [sys.executable, "-m", "examples.bert.train", "--out", str(tmp_path)]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "at least 90% wanted" in output and data.majority(tmp_path / "data") < 0.3
