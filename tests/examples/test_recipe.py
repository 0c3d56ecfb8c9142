"""What recipes share: curves of a run, a picture, and a score that ends the program if it is too low."""

import json

import pytest

from examples import recipe


@pytest.fixture
def out(tmp_path):
    lines = [{"step": 10, "loss": 3.0}, {"step": 20, "loss": 2.0, "valid/accuracy": 0.5}, {"step": 20, "other": 1}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_curves_and_their_picture(out):
    assert recipe.curve(out, "loss") == ([10, 20], [3.0, 2.0]) and recipe.curve(out, "valid/accuracy") == ([20], [0.5])
    recipe.plot(out / "loss.png", {"one": {"loss": (out, "loss")}, "two": {"accuracy": (out, "valid/accuracy")}})
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_a_score_that_is_not_reached_is_an_error(capsys):
    recipe.check("accuracy", 0.97, 0.97)
    assert "accuracy: 97.0%, at least 97% wanted" in capsys.readouterr().out
    for score in (0.96, float("nan")):
        with pytest.raises(SystemExit, match="not reached: accuracy"):
            recipe.check("accuracy", score, 0.97)
