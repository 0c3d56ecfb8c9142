"""The file of metrics is whole at every moment, and is that of the run."""

import json

from sbpjax.train.writers import JsonLines


def read(path):
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def test_what_is_behind_the_step_of_a_resume_goes(tmp_path):
    first = JsonLines()
    first.open(tmp_path, 0, 9)
    for step in (1, 2, 3):
        first.write(step, {"loss": step / 2})
        assert read(tmp_path)[-1] == {"step": step, "loss": step / 2}  # on the disk at once
    first.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')  # a run that was killed
    again = JsonLines()
    again.open(tmp_path, 2, 9)
    again.write(3, {"loss": 7.0})
    again.close()
    assert [(one["step"], one["loss"]) for one in read(tmp_path)] == [(1, 0.5), (2, 1.0), (3, 7.0)]


def test_a_run_that_begins_anew_keeps_the_file_of_the_one_before(tmp_path):
    for number in range(3):
        writer = JsonLines()
        writer.open(tmp_path, 0, 9)
        writer.write(1, {"loss": float(number)})
        writer.close()
    assert read(tmp_path) == [{"step": 1, "loss": 2.0}]
    for number, name in enumerate(("metrics.1.jsonl", "metrics.2.jsonl")):
        assert json.loads((tmp_path / name).read_text()) == {"step": 1, "loss": float(number)}


def test_what_is_no_number_is_written_by_name(tmp_path):
    writer = JsonLines()
    writer.open(tmp_path, 0, 9)
    writer.write(1, {"loss": float("nan"), "bound": float("inf")})
    assert read(tmp_path) == [{"step": 1, "loss": "nan", "bound": "inf"}]
    writer.close()
    JsonLines().write(1, {"loss": 1.0})  # without a directory: nowhere
