"""Helpers of the recipes: a plot of a run's metrics, and a check of its score."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def curve(out: Path, name: str) -> tuple[list[int], list[float]]:
    """Return steps and values of a metric, as ``metrics.jsonl`` of a run's directory has them."""
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    found = [(record["step"], record[name]) for record in records if name in record]
    return [step for step, _ in found], [value for _, value in found]


def plot(path: Path, panels: Mapping[str, Mapping[str, tuple[Path, str]]]) -> None:
    """Draw metrics of runs, a panel for each title.

    Args:
        path: the picture.
        panels: by title, the lines by their names: of which run's directory which metric.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(4.5 * len(panels), 3.2), dpi=80, squeeze=False)
    for panel, (title, lines) in zip(axes[0], panels.items(), strict=True):
        for name, (out, metric) in lines.items():
            steps, values = curve(out, metric)
            panel.plot(steps, values, marker="o" if len(steps) < 20 else "", markersize=3, label=name)
        panel.set(xlabel="step", title=title)
        panel.grid(alpha=0.3)
        panel.legend()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def check(name: str, score: float, bound: float) -> None:
    """Print a score; end the program with an error if it is below its bound."""
    output = f"{name}: {score:.1%}, at least {100 * bound:g}% wanted"
    if not score >= bound:
        raise SystemExit(f"not reached: {output}")
    print(output)
