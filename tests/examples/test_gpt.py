"""The GPT example: the same losses under every layout, exact resume, and what a run leaves behind."""

import csv
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from examples.gpt import data, train
from examples.gpt.model import GPTConfig
from examples.gpt.sharding import LAYOUTS

STEPS = 12
LOSS_TOLERANCE = 2e-5  # relative, float32 sums in another order over STEPS steps
TINY = train.Options(
    steps=STEPS,
    batch=8,
    lr=1e-2,
    warmup=2,
    eval_every=6,
    eval_batches=1,
    model=GPTConfig(context=16, layers=2, heads=4, width=32, dropout=0.1),
)


@pytest.fixture(scope="module")
def corpus():
    return data.load_corpus(seed=TINY.seed)


@pytest.fixture(scope="module")
def curve(corpus):
    """Return the losses of STEPS steps and the validation loss behind them, computed once per layout."""
    known = {}

    def losses(layout):
        if layout not in known:
            trainer = train.Trainer(replace(TINY, layout=layout), corpus)
            known[layout] = [trainer.advance().item() for _ in range(STEPS)] + [trainer.validate()]
        return known[layout]

    return losses


@pytest.mark.exhaustive  # half a minute each; the resumed run below has two layouts
@pytest.mark.slow
@pytest.mark.parametrize("layout", ["dp", "tp", "2d"])
def test_losses_are_those_of_one_device(layout, curve):
    np.testing.assert_allclose(curve(layout), curve("single"), rtol=LOSS_TOLERANCE)


def test_the_loss_falls(curve):
    losses = curve("single")
    assert losses[0] == pytest.approx(np.log(256), abs=0.1)  # knows nothing
    assert losses[STEPS - 1] < losses[0] - 1.5 and losses[STEPS] < losses[0] - 1.5


@pytest.mark.exhaustive  # half a minute; tests/graph compares small models
@pytest.mark.slow
def test_a_compiled_step_is_the_eager_step(corpus, curve):
    trainer = train.Trainer(replace(TINY, layout="single", model=replace(TINY.model, dropout=0.0)), corpus)
    compiled = [trainer.advance().item() for _ in range(3)]
    eager = train.Trainer(replace(TINY, layout="2d", model=replace(TINY.model, dropout=0.0)), corpus)
    losses = []
    for step in range(3):
        eager.optimizer.zero_grad()
        loss = eager.model.loss(*eager.batch(step))
        loss.backward()
        flow.nn.utils.clip_grad_norm_(eager.model.parameters(), TINY.clip)
        eager.optimizer.step()
        eager.scheduler.step()
        losses.append(loss.item())
    np.testing.assert_allclose(losses, compiled, rtol=LOSS_TOLERANCE)


@pytest.mark.slow
def test_resume_is_exact_in_the_same_layout_and_equal_to_rounding_in_another(corpus, curve, tmp_path):
    trainer = train.Trainer(replace(TINY, layout="2d"), corpus)
    for _ in range(STEPS // 2):
        trainer.advance()
    trainer.save(tmp_path / "checkpoint")
    resumed = train.Trainer(replace(TINY, layout="2d", seed=99), corpus)
    resumed.load(tmp_path / "checkpoint")
    assert [resumed.advance().item() for _ in range(STEPS // 2)] == curve("2d")[STEPS // 2 : STEPS]
    other = train.Trainer(replace(TINY, layout="single"), corpus)
    other.load(tmp_path / "checkpoint")
    np.testing.assert_allclose(
        [other.advance().item() for _ in range(STEPS // 2)], curve("2d")[STEPS // 2 : STEPS], rtol=LOSS_TOLERANCE
    )


@pytest.mark.slow
@pytest.mark.exhaustive  # a minute; the test before it resumes in two layouts
def test_resume_is_exact_under_every_option(corpus, tmp_path):
    options = {"zero": 3, "accumulate": 2, "amp": True, "checkpointing": True, "block_scan": True}
    options = replace(TINY, layout="2d", batch=16, **options, model=replace(TINY.model, layers=3))
    trainer = train.Trainer(options, corpus)
    for _ in range(3):
        trainer.advance()
    trainer.save(tmp_path / "checkpoint")
    expected = [*(trainer.advance().item() for _ in range(3)), trainer.validate()]
    resumed = train.Trainer(replace(options, seed=99), corpus)
    resumed.load(tmp_path / "checkpoint")
    assert [*(resumed.advance().item() for _ in range(3)), resumed.validate()] == expected


def test_options_of_the_command_line(monkeypatch):
    requested = ["--layout", "dp", "--accumulate", "4", "--zero", "2", "--amp", "--checkpointing", "--no-block-scan"]
    seen = []
    monkeypatch.setattr(sys, "argv", ["train", *requested, "--explain"])
    monkeypatch.setattr(train, "Trainer", lambda options, corpus: seen.append(options) or sys.exit())
    with pytest.raises(SystemExit):
        train.main()
    wanted = {"accumulate": 4, "zero": 2, "amp": True, "checkpointing": True, "block_scan": False}
    assert seen == [replace(train.Options(), layout="dp", **wanted)]


@pytest.mark.slow
def test_a_run_leaves_its_results_and_resumes(tmp_path, monkeypatch, curve):
    monkeypatch.setattr(train, "Options", lambda: replace(TINY, layout="single", steps=STEPS))
    monkeypatch.setattr(sys, "argv", ["train", "--out", str(tmp_path), "--prompt", "The if"])
    train.main()
    assert {p.name for p in tmp_path.iterdir()} == {"checkpoint", "losses.csv", "loss.png", "sample.txt"}
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    sample = (tmp_path / "sample.txt").read_text()
    assert sample.startswith("The if") and len(sample) > 100
    with (tmp_path / "losses.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(r["loss"]) for r in rows if r["kind"] == "train"] == curve("single")[:STEPS]
    assert [int(r["step"]) for r in rows if r["kind"] == "valid"] == [6, 12]
    again = train.train(replace(TINY, layout="single", steps=STEPS + 2), tmp_path, resume=True)
    assert again.step == STEPS + 2
    with (tmp_path / "losses.csv").open() as file:
        steps = [int(r["step"]) for r in csv.DictReader(file) if r["kind"] == "train"]
    assert steps == list(range(1, STEPS + 3))


def test_explain_prints_the_communication_of_a_step(monkeypatch, capsys):
    monkeypatch.setattr(train, "Options", lambda: replace(TINY, layout="2d"))
    monkeypatch.setattr(sys, "argv", ["train", "--explain"])
    train.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 110
    text = "\n".join(lines)
    assert "A rank receives" in text and "gradients of weights" in text and "model.py:" in text


def test_the_model_says_nothing_of_devices():
    text = Path(train.__file__).with_name("model.py").read_text()
    code = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
    assert not re.search(r"placement|sbp\.|to_global|split\(|broadcast|device", code)


@pytest.mark.exhaustive  # a minute; tests/graph/pipeline has stages of 2 x 2
@pytest.mark.slow
def test_stages_data_and_tensor_parallel_have_the_curve_of_one_device(corpus, tmp_path):
    options = replace(TINY, accumulate=2)
    staged = train.Trainer(replace(options, layout="2d", pipeline=2), corpus)
    assert [p.hierarchy for p in staged.layout.placements] == [(2, 2), (2, 2)]
    assert staged.model.blocks[1].mlp.up.weight.placement.ranks.tolist() == [[2, 3], [6, 7]]
    found = [staged.advance().item() for _ in range(STEPS // 2)]
    staged.save(tmp_path / "checkpoint")
    found += [staged.advance().item() for _ in range(STEPS // 2)] + [staged.validate()]
    one = train.Trainer(replace(options, layout="single"), corpus)
    expected = [one.advance().item() for _ in range(STEPS // 2)]
    one.load(tmp_path / "checkpoint")  # in whatever layout it was written
    expected += [one.advance().item() for _ in range(STEPS // 2)] + [one.validate()]
    np.testing.assert_allclose(found, expected, rtol=LOSS_TOLERANCE)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_parameter_lies_as_the_layout_says(layout, corpus):
    trainer = train.Trainer(replace(TINY, layout=layout), corpus)
    layout = LAYOUTS[layout]
    for name, parameter in trainer.model.named_parameters():
        assert parameter.placement == layout.placement and parameter.is_leaf and parameter.requires_grad
        assert parameter.sbp == tuple(layout.parameter(name)), name
    assert trainer.batch(0)[0].sbp == tuple(layout.batch)


def test_two_dimensional_layout_is_megatrons():
    layout = LAYOUTS["2d"]
    assert layout.placement.hierarchy == (2, 4)
    assert layout.parameter("blocks.0.attention.qkv.weight") == [flow.sbp.broadcast, flow.sbp.split(0)]
    assert layout.parameter("blocks.0.mlp.down.weight") == [flow.sbp.broadcast, flow.sbp.split(1)]
    assert layout.parameter("blocks.0.norm1.weight") == [flow.sbp.broadcast, flow.sbp.broadcast]
    assert layout.batch == [flow.sbp.split(0), flow.sbp.broadcast]


def test_corpus(corpus):
    assert len(corpus.train) > 300_000 and 8 * len(corpus.valid) < len(corpus.train) < 10 * len(corpus.valid)
    assert 3.0 < corpus.unigram_entropy() < 3.6
    x, y = corpus.batch(5, 4, 16)
    assert x.shape == y.shape == (4, 16) and x.dtype == np.int64
    np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
    np.testing.assert_array_equal(corpus.batch(5, 4, 16)[0], x)
    assert not np.array_equal(corpus.batch(6, 4, 16)[0], x)
    assert not np.array_equal(data.load_corpus(seed=99).batch(5, 4, 16)[0], x)
    batches = corpus.validation_batches(2, 3, 16)
    assert len(batches) == 2 and batches[0][0].shape == (3, 16)
    assert data.decode(data.encode("The if")) == "The if"


def test_a_text_of_ones_own(tmp_path):
    (tmp_path / "text").write_bytes(bytes(range(256)) * 500)
    corpus = data.load_corpus(str(tmp_path / "text"))
    assert (len(corpus.train), len(corpus.valid)) == (256 * 450, 256 * 50)
    assert corpus.unigram_entropy() == pytest.approx(np.log(256), rel=1e-12)
