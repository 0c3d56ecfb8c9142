"""Training runs as one HTML page: curves, a summary, time by part, and the differences of their configurations.

    python -m sbpjax.train.view runs/a runs/b --output both.html

The page comes from the ``metrics.jsonl`` of each run alone; the configurations from ``config.yaml``, where it exists.
It has no script and needs no network. Several runs are drawn into the same panels, a colour each.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from sbpjax.errors import SbpjaxError, TrainError
from sbpjax.utils.host import LazyModule, command_parser

from .curves import COLOURS, Line, number, panel
from .disk import convert_os_errors
from .writers import NAME

yaml = LazyModule("yaml")  # of omegaconf, of the extra `train`
_saved = LazyModule("sbpjax.train.config.saved")

_TITLES = {
    "loss": "loss", "lr": "learning rate", "grad_norm": "gradient norm", "tokens_per_s": "tokens/s",
    "samples_per_s": "samples/s", "mfu": "MFU", "step_ms": "time of a step, ms", "data_ms": "wait for data, ms",
    "device_memory_mb": "device memory, MB", "host_memory_mb": "host memory, MB", "steps_left_out": "steps left out",
}  # fmt: skip
_LEFT_OUT = ("step", "eta_s")
_STYLE = """<style>
.runs{font:14px/1.45 system-ui,sans-serif;max-width:1400px;margin:0 auto;padding:8px}
.runs h1{font-size:1.3em}.runs h2{font-size:1.1em;margin-top:1.6em}
.runs table{border-collapse:collapse;display:block;overflow-x:auto;margin-bottom:1em}
.runs td,.runs th{padding:2px 12px 2px 0;text-align:right;white-space:nowrap}
.runs td:first-child,.runs th:first-child,.runs .text td{text-align:left}
.runs .panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(400px,100%),1fr));gap:16px}
.runs figure{margin:0}.runs figcaption{font-weight:600}.runs svg{width:100%;height:auto}
.runs svg text{font-size:11px;fill:currentColor}.runs svg line{stroke:currentColor;opacity:.15}
.runs .bar{display:flex;height:18px;width:min(100%,700px)}.runs i{font-style:normal}
.runs .key{display:inline-block;width:.8em;height:.8em;margin-right:.4em}
</style>"""
_PAGE_STYLE = """<meta name="viewport" content="width=device-width">
<style>:root{color-scheme:light dark}body{margin:0}</style>"""


class Run(NamedTuple):
    """A run.

    Attributes:
        name: its directory's name, made longer where several runs share it.
        records: its records in order of step, each with ``"step"``.
        config: its configuration, ``{}`` where none is saved or omegaconf is missing.
    """

    name: str
    records: list[dict[str, float]]
    config: dict[str, Any]

    def line(self, metric: str) -> Line:
        """Return the values of a metric."""
        found = [(record["step"], record[metric]) for record in self.records if metric in record]
        return Line(self.name, [step for step, _ in found], [value for _, value in found])

    def values(self, metric: str) -> list[float]:
        """Return the finite values of a metric."""
        return [value for value in self.line(metric).values if math.isfinite(value)]


def read_run(path: str | Path) -> Run:
    """Return the run in a directory, or that of a file of metrics.

    Args:
        path: ``runs/a``, or ``runs/a/metrics.1.jsonl`` for an earlier run in the same directory.

    Raises:
        TrainError: there are no metrics.
    """
    path = Path(path)
    file = path / NAME if path.is_dir() else path
    operation = f"reading the metrics of {path}"
    if not file.is_file():
        seen = f"no file {file}"
        raise TrainError(operation, seen, "a run's directory has metrics.jsonl", "JsonLines() in Trainer(writers=…)")
    with convert_os_errors(operation, file.parent):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    records = [record for record in map(_record, lines) if record]
    if not records:
        rule = "a record is a line of JSON with a step"
        raise TrainError(operation, f"{len(lines)} lines without a record", rule, "wait for the first record")
    directory = file.parent.resolve()
    name = directory.name if file.name == NAME else f"{directory.name}/{file.stem}"
    return Run(name, sorted(records, key=lambda record: record["step"]), _config(file.parent / "config.yaml"))


def _record(line: str) -> dict[str, float]:
    """Return a line's numbers, ``{}`` for an incomplete line; NaN and infinities are texts in the file."""
    try:
        given = json.loads(line)
        found = {name: float(value) for name, value in given.items() if isinstance(value, (int, float, str))}
        return found if math.isfinite(found["step"]) else {}
    except (ValueError, KeyError, AttributeError):
        return {}


def _config(file: Path) -> dict[str, Any]:
    if not file.is_file() or importlib.util.find_spec("omegaconf") is None:
        return {}
    try:
        found = yaml.load(file.read_text(encoding="utf-8"), _saved.PlainLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return dict(_flatten(found, "")) if isinstance(found, dict) else {}


def _flatten(value: Any, name: str) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _flatten(part, f"{name}.{key}".strip("."))
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        for at, part in enumerate(value):
            yield from _flatten(part, f"{name}.{at}")
    else:
        yield name, value


class RunsReport:
    """A comparison of runs: a notebook displays it, and `to_html` returns its page.

    Args:
        paths: directories of runs, or files of metrics.

    Raises:
        TrainError: a run has no metrics.

    Example:
        >>> RunsReport("runs/a", "runs/b")  # doctest: +SKIP
    """

    def __init__(self, *paths: str | Path) -> None:
        runs = [read_run(path) for path in paths]
        names = [run.name for run in runs]
        self.runs = [
            run._replace(name=str(path)) if names.count(run.name) > 1 else run
            for run, path in zip(runs, paths, strict=True)
        ]

    def to_html(self) -> str:
        """Return the page, which needs no other file."""
        title = escape(", ".join(run.name for run in self.runs))
        head = f"<meta charset='utf-8'><title>{title}</title>{_PAGE_STYLE}"
        return f"<!doctype html><html lang='en'><head>{head}</head><body>{self._repr_html_()}</body></html>\n"

    def _repr_html_(self) -> str:
        metrics = dict.fromkeys(name for run in self.runs for record in run.records for name in record)
        known = ["loss", *(name for name in metrics if "/" in name), *_TITLES]
        ordered = [name for name in dict.fromkeys([*known, *metrics]) if name in metrics and name not in _LEFT_OUT]
        panels = "".join(panel(_TITLES.get(name, name), [run.line(name) for run in self.runs]) for name in ordered)
        heading = f"<h1>{len(self.runs)} training run{'s' * (len(self.runs) != 1)}</h1>"
        return (
            f"{_STYLE}<div class='runs'>{heading}{self._summary()}<div class='panels'>{panels}</div>"
            f"{self._time_by_part()}{self._configurations()}</div>"
        )

    def _summary(self) -> str:
        rows: dict[str, list[str]] = {}
        for run in self.runs:
            losses = run.values("loss")
            evaluations = dict.fromkeys(name for record in run.records for name in record if "/" in name)
            cells = {
                "last step": number(run.records[-1]["step"]),
                "last loss": number(losses[-1]) if losses else "",
                **{f"last {name}": number(run.values(name)[-1]) for name in evaluations if run.values(name)},
                **{f"median {_TITLES[m]}": _median(run, m) for m in ("tokens_per_s", "step_ms", "mfu")},
                **{f"largest {_TITLES[m]}": _largest(run, m) for m in ("device_memory_mb", "host_memory_mb")},
                "steps left out": _largest(run, "steps_left_out"),
            }
            for name, cell in cells.items():
                rows.setdefault(name, [""] * len(self.runs))[self.runs.index(run)] = cell
        shown = {name: cells for name, cells in rows.items() if any(cells)}
        head = "".join(f"<th>{_key(at)}{escape(run.name)}</th>" for at, run in enumerate(self.runs))
        return f"<table><tr><th></th>{head}</tr>{_rows(shown)}</table>"

    def _time_by_part(self) -> str:
        """Return a bar per run: the mean time of a step, of it the wait for data."""
        longest, bars = max((_mean(run, "step_ms") for run in self.runs), default=0.0), []
        for run in self.runs:
            step, data = _mean(run, "step_ms"), min(_mean(run, "data_ms"), _mean(run, "step_ms"))
            if step:
                parts = ((data, "wait for data", "#bab0ac"), (step - data, "compute and communicate", "#4e79a7"))
                drawn = "".join(
                    f"<i style='width:{100 * ms / longest:.1f}%;background:{colour}' title='{name}: {ms:.1f} ms'></i>"
                    for ms, name, colour in parts
                )
                text = ", ".join(f"{name} {number(ms)} ms" for ms, name, _ in parts)
                bars.append(f"<div>{escape(run.name)}: {text}<div class='bar'>{drawn}</div></div>")
        return f"<h2>Time of a step by part (mean)</h2>{''.join(bars)}" if bars else ""

    def _configurations(self) -> str:
        """Return the values that differ between runs; of one run all values."""
        names = dict.fromkeys(name for run in self.runs for name in run.config)
        table = {name: [repr(run.config[name]) if name in run.config else "" for run in self.runs] for name in names}
        head = "".join(f"<th>{escape(run.name)}</th>" for run in self.runs)
        if not names:
            return ""
        if len(self.runs) == 1:
            rows = f"<table class='text'>{_rows(table)}</table>"
            return f"<h2>Configuration</h2><details><summary>{len(table)} values</summary>{rows}</details>"
        table = {name: cells for name, cells in table.items() if len(set(cells)) > 1}
        rows = f"<table class='text'><tr><th></th>{head}</tr>{_rows(table)}</table>" if table else "<p>None.</p>"
        return f"<h2>Differences of the configurations</h2>{rows}"


def _rows(table: dict[str, list[str]]) -> str:
    return "".join(
        f"<tr><td>{escape(name)}</td>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for name, cells in table.items()
    )


def _key(at: int) -> str:
    return f"<span class='key' style='background:{COLOURS[at % len(COLOURS)]}'></span>"


def _median(run: Run, metric: str) -> str:
    values = sorted(run.values(metric))
    return number(values[len(values) // 2]) if values else ""


def _largest(run: Run, metric: str) -> str:
    values = run.values(metric)
    return number(max(values)) if values else ""


def _mean(run: Run, metric: str) -> float:
    values = run.values(metric)
    return sum(values) / len(values) if values else 0.0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    made = command_parser("sbpjax.train.view")
    made.add_argument("runs", nargs="+", metavar="RUN", help="the directory of a run, or a metrics.jsonl")
    made.add_argument(
        "--output", metavar="FILE", help="path of the page; by default view.html in the first run's directory"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page of some runs, and print its path."""
    options = parser().parse_args(arguments)
    try:
        report = RunsReport(*options.runs)
        first = Path(options.runs[0])
        file = Path(options.output or (first if first.is_dir() else first.parent) / "view.html")
        with convert_os_errors(f"writing {file}", file.parent):
            file.write_text(report.to_html(), encoding="utf-8")
    except SbpjaxError as error:
        sys.exit(f"error: {error}")
    print(file)


if __name__ == "__main__":
    main()
