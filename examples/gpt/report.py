"""Output of a run: the progress bar, `losses.csv` and `loss.png`."""

from __future__ import annotations

import csv
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

console = Console()


def progress_bar() -> Progress:
    """Return a bar with loss, tokens per second and the time left; its task has the fields `loss` and `speed`."""
    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TextColumn("{task.fields[speed]:,.0f} tokens/s"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )


class History:
    """The losses of a run, kept in `losses.csv` so that a resumed run goes on with the same curve.

    Args:
        path: the file.
        upto: rows after this step are dropped: an interrupted run got further than its last checkpoint.
    """

    def __init__(self, path: Path, upto: int = 0):
        self.path = path
        self.train: dict[int, float] = {}
        self.valid: dict[int, float] = {}
        if upto and path.exists():
            with path.open(newline="") as file:
                for row in csv.DictReader(file):
                    if int(row["step"]) <= upto:
                        getattr(self, row["kind"])[int(row["step"])] = float(row["loss"])

    def save(self) -> None:
        """Rewrite the file; a crash leaves the previous one."""
        fresh = self.path.with_suffix(".new")
        with fresh.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["kind", "step", "loss"])
            for kind in ("train", "valid"):
                writer.writerows([kind, step, repr(loss)] for step, loss in getattr(self, kind).items())
        fresh.replace(self.path)

    def plot(self, path: Path, title: str, unigram: float) -> None:
        """Draw both curves, with the loss of a unigram model as a line to beat."""
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(8, 4.5), dpi=120)
        axes.plot(list(self.train), list(self.train.values()), linewidth=0.8, alpha=0.6, label="training")
        axes.plot(list(self.valid), list(self.valid.values()), marker="o", markersize=3, label="validation")
        axes.axhline(unigram, color="grey", linestyle="--", linewidth=0.8, label="byte frequencies alone")
        axes.set(xlabel="step", ylabel="loss (nats per byte)", title=title)
        axes.legend()
        axes.grid(alpha=0.3)
        figure.tight_layout()
        figure.savefig(path)
        plt.close(figure)
