"""The page of training runs: panels, the summary, time by part, differences of configurations, damaged files."""

import json
import math

import pytest

from sbpjax.errors import TrainError
from sbpjax.train.view import RunsReport, main, read_run
from tests.support.browser import inspect_page


def write_run(folder, slope=0.01, records=30, **more):
    folder.mkdir()
    lines = []
    for step in range(10, 10 * records + 1, 10):
        speed = {"step_ms": 80.0, "data_ms": 20.0, "tokens_per_s": 1e4, "mfu": 0.4, "host_memory_mb": 900.0}
        lines += [{"step": step, "loss": 2 + math.exp(-slope * step), "lr": slope, "eta_s": 1.0, **speed, **more}]
        lines += [{"step": step, "grad_norm": 1.0 if step != 50 else "inf", "steps_left_out": int(step >= 50)}]
        lines += [{"step": step, "validation/loss": 2.5}] * (step % 100 == 0)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 5000, "lo')
    config = f"# sbpjax 0.1.0\ntrainer:\n  batch_size: 32\n  optimizer:\n    lr: {slope}\n"
    (folder / "config.yaml").write_text(config)
    return folder


def test_an_incomplete_record_and_infinities_are_left_out(tmp_path):
    run = read_run(write_run(tmp_path / "a"))
    assert len(run.values("loss")) == 30 and len(run.values("grad_norm")) == 29
    assert run.line("grad_norm").values[4] == math.inf and run.records[-1]["step"] == 300


def test_two_runs_share_panels_and_differ_in_their_configuration(tmp_path):
    pytest.importorskip("omegaconf", reason="needs the extra `train`")
    page = RunsReport(write_run(tmp_path / "a"), write_run(tmp_path / "b", slope=0.05)).to_html()
    for title in ("loss", "validation/loss", "learning rate", "gradient norm", "tokens/s", "MFU", "host memory, MB"):
        assert page.count(f"<figcaption>{title}</figcaption>") == 1, title
    assert "eta_s" not in page and "wait for data 20 ms, compute and communicate 60 ms" in page
    differences = page.partition("Differences of the configurations")[2]
    assert "trainer.optimizer.lr</td><td>0.01</td><td>0.05" in differences and "batch_size" not in differences


def test_metrics_alone_are_enough(tmp_path):
    folder = write_run(tmp_path / "a")
    (folder / "config.yaml").unlink()
    page = RunsReport(folder / "metrics.jsonl").to_html()
    assert "Configuration" not in page and page.count("<figure>") == 10


def test_runs_of_one_name_are_shown_by_their_paths(tmp_path):
    for part in ("x", "y"):
        (tmp_path / part).mkdir()
    report = RunsReport(write_run(tmp_path / "x" / "a"), write_run(tmp_path / "y" / "a"))
    assert [run.name for run in report.runs] == [str(tmp_path / "x" / "a"), str(tmp_path / "y" / "a")]


def test_page_of_long_runs_is_small_and_needs_no_network(tmp_path):
    runs = [write_run(tmp_path / name, records=3000) for name in "abcdef"]
    page = RunsReport(*runs).to_html()
    assert len(page.encode()) <= 500_000 and "http" not in page and "<script" not in page


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 390])
def test_browser_draws_all_panels(width, tmp_path):
    page = RunsReport(write_run(tmp_path / "a"), write_run(tmp_path / "b")).to_html()
    (tmp_path / "browser").mkdir()
    found = inspect_page(page, tmp_path / "browser", width)
    assert found["pictures"] == 10 and found["lines"] >= 20 and found["loaded"] == 0 and not found["wide"]
    assert "2 training runs" in found["text"]


def test_command_writes_the_page_into_the_first_run(tmp_path, capsys):
    folder = write_run(tmp_path / "a")
    main([str(folder)])
    assert capsys.readouterr().out.strip() == str(folder / "view.html") and (folder / "view.html").exists()


@pytest.mark.parametrize("text", [None, "", "no json\n"])
def test_run_without_metrics_is_an_error(text, tmp_path):
    if text is not None:
        (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(TrainError, match=r"(?s)reading the metrics of .*seen: .*fix: "):
        RunsReport(tmp_path)
    with pytest.raises(SystemExit, match="error: reading the metrics"):
        main([str(tmp_path)])
